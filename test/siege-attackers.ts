/**
 * A process of its own that does to a hub what SECURITY.md says it withstands, until its standard input ends: connections to the
 * agents' port that say nothing, connections to the page that say nothing or half a request, and frames that inflate to a thousand
 * times their size, on as many streams as that takes. Every connection that is closed is opened again. Says `attacking` when all
 * are at the doors and the first frame is out, and what came of it since, in a line of JSON, whenever it is sent SIGUSR1.
 */
import { spawnSync } from 'node:child_process'
import { connect } from 'node:net'
import { constants, setPriority } from 'node:os'
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

/** What came of an attack. */
export interface Blows {
  /** connections that are open now */
  readonly open: { readonly silent: number; readonly idle: number }
  /** since this was asked for last */
  readonly bombs: number
  readonly streams: number
}

const MiB = 2 ** 20
const AGAIN_MS = 200
const MAX_STREAMS = 20
const attack = JSON.parse(process.argv[2] ?? '{}') as Attack
const open = { silent: 0, idle: 0 }
let [bombs, streams] = [0, 0]

function hold(door: keyof typeof open, port: number, says: string): void {
  const socket = connect({ port, host: '127.0.0.1' }, () => {
    open[door]++
    socket.once('close', () => open[door]--)
    if (says !== '') socket.write(says)
  })
  socket.on('error', () => undefined)
  socket.on('data', () => undefined)
  socket.on('close', () => setTimeout(hold, AGAIN_MS, door, port, says))
}

const body = deflateRawSync(Buffer.alloc(31 * MiB))
const credentials = ChannelCredentials.createSsl(null, null, null, { rejectUnauthorized: false })
const ready = new Set<StreamClient>()
let opening = 0
let sequence = 0

async function openStream(): Promise<void> {
  opening++
  streams++
  const address = { host: '127.0.0.1', port: attack.ingesterPort }
  await using link = new StreamClient({ address, token: attack.token, credentials })
  link.send(hello({ cluster: attack.cluster, token: attack.token, origin: 'bomber' }))
  const isIn = await link.next('welcome').then(
    () => true,
    () => false,
  )
  if (isIn) ready.add(link)
  else await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
  opening--
  await link.ended()
  ready.delete(link)
}

function bomb(): void {
  const [link] = ready
  if (ready.size + opening < MAX_STREAMS && ready.size < 2) void openStream()
  if (!link) return
  const value = { sequence: ++sequence, base: 0, backfill: false, collectedAtMs: Date.now(), ageMs: 0 }
  link.send({ case: 'frame', value: { ...value, compression: 1, bodyBytes: 31 * MiB, body } })
  bombs++
}

for (let i = 0; i < attack.silent; i++) hold('silent', attack.ingesterPort, '')
for (let i = 0; i < attack.idle; i++) hold('idle', attack.apiPort, i % 2 ? '' : 'GET / HTTP/1.1\r\nhost: page\r\n')
if (attack.bombsPerSecond > 0) setInterval(bomb, 1000 / attack.bombsPerSecond)
process.stdin.resume().on('end', () => process.exit(0))
process.on('SIGUSR1', () => {
  process.stdout.write(`${JSON.stringify({ open, bombs, streams } satisfies Blows)}\n`)
  bombs = 0
  streams = 0
})
/** Real attackers have machines of their own: these take what everybody else leaves of this one. */
function standBack(): void {
  const chrt = spawnSync('chrt', ['--all-tasks', '--idle', '--pid', '0', String(process.pid)])
  if (chrt.status !== 0) setPriority(constants.priority.PRIORITY_LOW)
}

const begun = setInterval(() => {
  if (open.silent < attack.silent || open.idle < attack.idle || (attack.bombsPerSecond > 0 && bombs === 0)) return
  clearInterval(begun)
  standBack()
  process.stdout.write('attacking\n')
}, 50)
