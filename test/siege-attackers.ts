/**
 * A process of its own that does to a hub what SECURITY.md says it withstands, until its standard input ends: connections to the
 * agents' port that say nothing, connections to the page that say nothing or half a request, and frames that inflate to a thousand
 * times their size. Every connection that is closed is opened again.
 */
import { connect } from 'node:net'
import { deflateRawSync } from 'node:zlib'
import { ChannelCredentials } from '@grpc/grpc-js'
import { StreamClient } from '../src/pipeline/ingest/stream/test/clients.ts'
import { hello } from '../src/pipeline/ingest/stream/test/own-agent.ts'

export interface Attack {
  readonly ingesterPort: number
  readonly apiPort: number
  /** connections to the agents' port */
  readonly silent: number
  /** connections to the page */
  readonly idle: number
  readonly bombsPerSecond: number
  /** of a connection whose agent sends the bombs */
  readonly cluster: string
  readonly token: string
}

const MiB = 2 ** 20
const AGAIN_MS = 200
const attack = JSON.parse(process.argv[2] ?? '{}') as Attack

function hold(port: number, says: string): void {
  const socket = connect({ port, host: '127.0.0.1' }, () => says && socket.write(says))
  socket.on('error', () => undefined)
  socket.on('data', () => undefined)
  socket.on('close', () => setTimeout(hold, AGAIN_MS, port, says))
}
for (let i = 0; i < attack.silent; i++) hold(attack.ingesterPort, '')
for (let i = 0; i < attack.idle; i++) hold(attack.apiPort, i % 2 ? '' : 'GET / HTTP/1.1\r\nhost: page\r\n')

const body = deflateRawSync(Buffer.alloc(31 * MiB))
async function bomb(): Promise<void> {
  const credentials = ChannelCredentials.createSsl(null, null, null, { rejectUnauthorized: false })
  let sequence = 0
  for (;;) {
    const address = { host: '127.0.0.1', port: attack.ingesterPort }
    await using link = new StreamClient({ address, token: attack.token, credentials })
    link.send(hello({ cluster: attack.cluster, token: attack.token, origin: 'bomber' }))
    await link.next('welcome').catch(() => undefined)
    while (!link.status) {
      const value = { sequence: ++sequence, base: 0, backfill: false, collectedAtMs: Date.now(), ageMs: 0 }
      link.send({ case: 'frame', value: { ...value, compression: 1, bodyBytes: 31 * MiB, body } })
      await new Promise((resolve) => setTimeout(resolve, 1000 / attack.bombsPerSecond))
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
  }
}
if (attack.bombsPerSecond > 0) void bomb()
process.stdin.resume().on('end', () => process.exit(0))
process.stdout.write('attacking\n')
