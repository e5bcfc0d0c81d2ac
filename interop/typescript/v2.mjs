// @modelcontextprotocol/client, as walk.mjs needs it.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const modes = {
  legacy: {},
  auto: { versionNegotiation: { mode: 'auto' } },
  pin: { versionNegotiation: { mode: { pin: '2026-07-28' } } },
};

/** The server that is to be started: `stdio:` and its command. */
function server(url) {
  const [command, ...args] = url.slice('stdio:'.length).split(' ');
  return { command, args };
}

export async function connect(url, mode, log, changed) {
  const client = new Client({ name: 'walk', version: '0.0.0' }, modes[mode]);
  client.onerror = error => console.error(`onerror: ${error}`);
  client.setNotificationHandler('notifications/message', log);
  client.setNotificationHandler('notifications/tools/list_changed', changed);
  const stdio = url.startsWith('stdio:') && new StdioClientTransport(server(url));
  const transport = stdio || new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  return {
    version: client.getNegotiatedProtocolVersion(),
    listTools: () => client.listTools(),
    callTool: (params, options) => client.callTool(params, options),
    listen: filter => client.listen(filter),
    deleteSession: () => transport.terminateSession?.(),
    close: () => client.close(),
  };
}
