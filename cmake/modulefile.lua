-- Lmod module of shakedown; finds its prefix from where this file is, so the tree may be moved.
local version = myModuleVersion()
local prefix = pathJoin(myFileName():match("^(.*)/[^/]*$"), "../../..")

whatis("Name: shakedown")
whatis("Version: " .. version)
whatis("Description: tells whether a node is fit for GPU collectives")
help([[shakedown probes this node, runs a real all-reduce and names root causes.
Start with: shakedown]])

prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
