// One official TypeScript client, driven line by line: a command comes in, its outcome goes out.
//
//   node peer.mjs PACKAGE MODE COMMAND [ARGUMENT...]
//   node peer.mjs PACKAGE MODE URL
//
// PACKAGE is `sdk` (v1) or `client` (v2); MODE is how v2 negotiates: `legacy` or `auto`.
// Over HTTP each request has the headers of PEER_HEADERS.
import { createInterface } from 'node:readline';

const [kind, mode, command, ...args] = process.argv.slice(2);
const { Client } = await import(
  kind === 'sdk' ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client'
);
const { StdioClientTransport } = await import(
  kind === 'sdk' ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio'
);
const { StreamableHTTPClientTransport } = await import(
  kind === 'sdk' ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client'
);

const client = new Client(
  { name: 'amux-test-peer', version: '0' },
  kind === 'sdk' ? {} : { versionNegotiation: { mode } },
);
const strays = [];
client.onerror = (error) => strays.push(String(error));
client.fallbackNotificationHandler = async (one) => strays.push(JSON.stringify(one));
const transport = command.startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(command), {
      requestInit: { headers: JSON.parse(process.env.PEER_HEADERS) },
    })
  : new StdioClientTransport({ command, args, env: process.env });
await client.connect(transport);

const verbs = {
  about: async () => ({
    server: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
  }),
  ping: async () => client.ping(),
  list: async () => (await client.listTools()).tools,
  call: async (params) => client.callTool(params),
  strays: async () => strays,
};

for await (const line of createInterface({ input: process.stdin })) {
  const { verb, params } = JSON.parse(line);
  let outcome;
  try {
    outcome = { ok: await verbs[verb](params) };
  } catch (error) {
    outcome = { failed: { code: error.code ?? null, message: String(error.message) } };
  }
  process.stdout.write(JSON.stringify(outcome) + '\n');
}
await client.close();
