// @modelcontextprotocol/sdk, as walk.mjs needs it.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

export async function connect(url, mode, log, changed) {
  const client = new Client({ name: 'walk', version: '0.0.0' });
  client.onerror = error => console.error(`onerror: ${error}`);
  client.setNotificationHandler(LoggingMessageNotificationSchema, log);
  client.setNotificationHandler(ToolListChangedNotificationSchema, changed);
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  return {
    version: transport.protocolVersion,
    listTools: () => client.listTools(),
    callTool: (params, options) => client.callTool(params, undefined, options),
    deleteSession: () => transport.terminateSession(),
    close: () => client.close(),
  };
}
