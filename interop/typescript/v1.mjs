// @modelcontextprotocol/sdk, as walk.mjs needs it.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

/** The server that is to be started: `stdio:` and its command. */
function server(url) {
  const [command, ...args] = url.slice('stdio:'.length).split(' ');
  return { command, args };
}

export async function connect(url, mode, log, changed) {
  const client = new Client({ name: 'walk', version: '0.0.0' });
  client.onerror = error => console.error(`onerror: ${error}`);
  client.setNotificationHandler(LoggingMessageNotificationSchema, log);
  client.setNotificationHandler(ToolListChangedNotificationSchema, changed);
  const stdio = url.startsWith('stdio:') && new StdioClientTransport(server(url));
  const transport = stdio || new StreamableHTTPClientTransport(new URL(url));
  // The one on stdio does not need to know, and would not say.
  if (stdio) stdio.setProtocolVersion = version => (stdio.protocolVersion = version);
  await client.connect(transport);
  return {
    version: transport.protocolVersion,
    listTools: () => client.listTools(),
    callTool: (params, options) => client.callTool(params, undefined, options),
    deleteSession: () => transport.terminateSession?.(),
    close: () => client.close(),
  };
}
