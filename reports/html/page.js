"use strict";
(function () {
  var text = document.getElementById("filter");
  var boxes = document.querySelectorAll(".filter input[type=checkbox]");
  var rows = document.querySelectorAll("table.matrix tbody tr");
  var ready = false;
  var shown = document.getElementById("shown");
  function apply() {
    var words = text.value.toLowerCase().split(/\s+/);
    var count = 0;
    rows.forEach(function (row) {
      var mark = row.cells[0].className.trim();
      var on = true;
      boxes.forEach(function (box) { if (box.value === mark && !box.checked) { on = false; } });
      var line = row.textContent.toLowerCase();
      on = on && words.every(function (word) { return line.indexOf(word) !== -1; });
      row.hidden = !on;
      count += on ? 1 : 0;
    });
    shown.textContent = count + " of " + rows.length;
    var off = [];
    boxes.forEach(function (box) { if (!box.checked) { off.push(box.value); } });
    var state = "q=" + encodeURIComponent(text.value) + "&off=" + off.join(",");
    if (ready) { history.replaceState(null, "", "#" + state); }
  }
  /* The filter is in the address: a colleague who opens it sees the same rows. */
  function restore() {
    var state = /^#q=([^&]*)&off=([a-z,]*)$/.exec(location.hash);
    if (!state) { return; }
    try { text.value = decodeURIComponent(state[1]); } catch (e) { return; }
    var off = state[2].split(",");
    boxes.forEach(function (box) { box.checked = off.indexOf(box.value) === -1; });
  }
  function contents() {
    var nav = document.createElement("nav"), heads = document.querySelectorAll("section > h2");
    nav.setAttribute("aria-label", "contents");
    heads.forEach(function (head, i) {
      var link = document.createElement("a");
      head.id = "part" + i;
      link.href = "#part" + i;
      link.textContent = head.textContent;
      nav.appendChild(link);
    });
    if (heads.length) { document.querySelector("header").after(nav); }
  }
  function copies() {
    if (!navigator.clipboard) { return; }
    document.querySelectorAll(".cause pre").forEach(function (pre) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = "copy";
      button.addEventListener("click", function () {
        navigator.clipboard.writeText(pre.textContent).then(function () { button.textContent = "copied"; });
      });
      pre.before(button);
    });
  }
  /* A cell of the map leads to the rows of its setting. */
  function cells() {
    var names = Array.from(document.querySelectorAll("table.heat thead th")).map(function (head) {
      return head.textContent;
    });
    document.querySelectorAll("table.heat tbody td").forEach(function (cell) {
      if (!cell.textContent) { return; }
      var link = document.createElement("a");
      link.href = "#q=" + encodeURIComponent(names[cell.cellIndex]) + "&off=";
      link.textContent = cell.textContent;
      link.setAttribute("aria-label", cell.title + ", show its rows");
      cell.textContent = "";
      cell.appendChild(link);
    });
  }
  if (text) {
    document.querySelector(".filter").hidden = false;
    restore();
    text.addEventListener("input", apply);
    boxes.forEach(function (box) { box.addEventListener("change", apply); });
    apply();
    ready = true;
    cells();
    window.addEventListener("hashchange", function () {
      if (/^#q=/.test(location.hash)) {
        restore();
        apply();
        text.scrollIntoView();
      }
    });
  }
  contents();
  copies();
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (d) { d.open = true; });
  });
}());
