// Registers the server of this package with pi, which finds the skill itself.
import { fileURLToPath } from "node:url";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

// npm on Windows does not mark a file as executable, so `sh` is named.
const server =
  process.platform === "win32"
    ? { command: path("bin/sessions-mcp.cmd"), args: [] }
    : { command: "sh", args: [path("bin/sessions-mcp")] };

export default function (pi) {
  pi.registerMcpServer("sessions", { ...server, description: "@DESCRIPTION@" });
}
