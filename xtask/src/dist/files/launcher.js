#!/usr/bin/env node
// Runs the program of the package for this platform, with the same input, output and exit code.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `sessions-mcp-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "sessions.exe" : "sessions";

let program;
try {
  program = require.resolve(`${name}/bin/${file}`);
} catch {
  console.error(`error: the package ${name} is not installed`);
  console.error("hint: if your platform is supported, install again without --omit=optional");
  process.exit(3);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: true });

// A terminal sends its signals to the program as well. Others are sent to this process alone.
const passed = process.platform === "win32" ? [] : ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];
for (const signal of passed) {
  process.on(signal, () => {
    const isFromTerminal = process.stdin.isTTY && signal !== "SIGTERM" && signal !== "SIGHUP";
    if (!isFromTerminal) child.kill(signal);
  });
}

child.on("error", (error) => {
  console.error(`error: cannot run ${program}: ${error.message}`);
  process.exit(3);
});

child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const known of passed) process.removeAllListeners(known);
  // A shell sees that the program ended by a signal.
  process.kill(process.pid, signal);
  setTimeout(() => process.exit(128 + (constants.signals[signal] ?? 0)), 100);
});
