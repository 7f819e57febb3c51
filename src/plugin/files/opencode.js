// Registers the server and the skill of this package with OpenCode.
import { fileURLToPath } from "node:url";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

// npm on Windows does not mark a file as executable, so `sh` is named.
const command =
  process.platform === "win32" ? [path("bin/sessions-mcp.cmd")] : ["sh", path("bin/sessions-mcp")];

export const SessionsPlugin = async () => ({
  config: async (config) => {
    // A server of this name in the user's own configuration comes first.
    config.mcp = { sessions: { type: "local", command, enabled: true }, ...config.mcp };
    config.skills = { ...config.skills, paths: [...(config.skills?.paths ?? []), path("skills")] };
  },
});
