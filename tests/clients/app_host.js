// A client that shows an app in a frame, with the reference host of MCP Apps (AppBridge of
// @modelcontextprotocol/ext-apps). tests/check_app.py bundles it and defines `callServer`.

import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

/** What a frame may do without domains of its own: the policy that the extension prescribes. */
const POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; media-src data:; connect-src 'none'";

/** Shows an app with the arguments and the result of the call that it belongs to. */
window.showApp = async ({ html, args, result, context }) => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.title = "the app";
  frame.style = "border: 0; width: 100%; height: 200px; display: block";
  document.body.replaceChildren(frame);

  const capabilities = { openLinks: {}, serverTools: {} };
  const bridge = new AppBridge(null, { name: "host", version: "1" }, capabilities, { hostContext: context });
  window.bridge = bridge;
  window.openedLinks = [];
  bridge.oncalltool = (params) => window.callServer(params.name, params.arguments ?? {});
  bridge.onopenlink = async ({ url }) => {
    window.openedLinks.push(url);
    return {};
  };
  bridge.onsizechange = ({ height }) => {
    frame.style.height = `${height}px`;
  };
  const isReady = new Promise((resolve) => {
    bridge.oninitialized = resolve;
  });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = html.replace("<head>", `<head><meta http-equiv="Content-Security-Policy" content="${POLICY}">`);
  await isReady;
  await bridge.sendToolInput({ arguments: args });
  await bridge.sendToolResult(result);
};
