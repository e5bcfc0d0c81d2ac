// Takes a client of the TypeScript SDK through the steps that ../auth lists: node auth.mjs v1|v2 URL MODE ISSUER
import assert from 'node:assert/strict';

const [library, url, mode, issuer] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } =
  library === 'v2'
    ? await import('@modelcontextprotocol/client')
    : {
        ...(await import('@modelcontextprotocol/sdk/client/index.js')),
        ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
      };

const REDIRECT = 'http://localhost:1/callback';
const modes = { pin: { versionNegotiation: { mode: { pin: '2026-07-28' } } } };

/** Keeps what the library learns. The user agrees at once. */
class Provider {
  redirectUrl = REDIRECT;
  clientMetadata = {
    client_name: 'walk',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'none',
  };
  // Where the server takes URLs for client identifiers there is nothing to register.
  clientMetadataUrl = mode === 'pin' ? 'https://client.example.com/metadata.json' : undefined;
  #kept = {};
  /** Whether the library may see its refresh token. */
  refreshes = true;

  clientInformation = () => this.#kept.client;
  saveClientInformation = client => void (this.#kept.client = client);
  tokens = () => this.#kept.tokens && { ...this.#kept.tokens, ...(this.refreshes ? {} : { refresh_token: undefined }) };
  saveTokens = tokens => void (this.#kept.tokens = tokens);
  codeVerifier = () => this.#kept.verifier;
  saveCodeVerifier = verifier => void (this.#kept.verifier = verifier);
  async redirectToAuthorization(authorizationUrl) {
    const { headers } = await fetch(authorizationUrl, { redirect: 'manual' });
    this.answer = new URL(headers.get('location')).searchParams;
  }
}

const provider = new Provider();
let client, transport;

async function connect() {
  client = new Client({ name: 'walk', version: '0.0.0' }, modes[mode]);
  client.onerror = () => {};
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  await client.connect(transport);
}

/** The library gives up until the user has agreed, and the code is there. */
async function agreeing(work) {
  delete provider.answer;
  await work().then(
    () => assert.fail('no agreement was needed'),
    error => assert.ok(provider.answer, error),
  );
  await transport.finishAuth(library === 'v2' ? provider.answer : provider.answer.get('code'));
  return work();
}

async function call(name) {
  const result = library === 'v2' ? await client.callTool({ name }) : await client.callTool({ name }, undefined);
  return result.content[0].text;
}

async function authorize() {
  await agreeing(connect);
}

async function look() {
  assert.match(await call('look'), /"ada"\] sees a file$/);
}

async function stepUp() {
  // v1 refreshes where it should ask for more.
  provider.refreshes = library === 'v2';
  assert.match(await agreeing(() => call('delete')), /"ada"\] has deleted it$/);
  provider.refreshes = true;
}

/** The token has expired since it was used last. */
async function refresh() {
  const { access_token } = await (await fetch(`${issuer}/expired?${new URLSearchParams({ resource: url })}`)).json();
  provider.saveTokens({ ...provider.tokens(), access_token });
  await look();
  assert.notEqual(provider.tokens().access_token, access_token);
}

async function close() {
  if (mode !== 'pin') await transport.terminateSession();
  await client.close();
}

for (const [name, work] of Object.entries({ authorize, look, 'step-up': stepUp, refresh, close })) {
  try {
    await work();
    console.log(`${name} ok`);
  } catch (error) {
    console.log(`${name} failed ${String(error?.stack ?? error).replaceAll('\n', ' ')}`);
  }
}
