"use strict";
(function () {
  var text = document.getElementById("filter");
  var boxes = document.querySelectorAll(".filter input[type=checkbox]");
  var rows = document.querySelectorAll("table.matrix tbody tr");
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
  }
  if (text) {
    document.querySelector(".filter").hidden = false;
    text.addEventListener("input", apply);
    boxes.forEach(function (box) { box.addEventListener("change", apply); });
    apply();
  }
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (d) { d.open = true; });
  });
}());
