// @modelcontextprotocol/client, as walk.mjs needs it.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const modes = {
  legacy: {},
  auto: { versionNegotiation: { mode: 'auto' } },
  pin: { versionNegotiation: { mode: { pin: '2026-07-28' } } },
};

export async function connect(url, mode, log) {
  const client = new Client({ name: 'walk', version: '0.0.0' }, modes[mode]);
  // That the caller has given up is reported as an error too.
  client.onerror = error => error.name === 'AbortError' || console.error(`onerror: ${error}`);
  client.setNotificationHandler('notifications/message', log);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return {
    version: client.getNegotiatedProtocolVersion(),
    listTools: () => client.listTools(),
    callTool: (params, options) => client.callTool(params, options),
    close: () => client.close(),
  };
}
