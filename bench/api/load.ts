/*
 * Requests over so many kept connections, each sending the next one when its answer is complete. Counts bytes instead of
 * parsing answers: the load must cost less than what it measures, as both share the machine.
 *
 *   node load.js URL CONNECTIONS SECONDS RATE [HEADER…]     RATE 0: as fast as answers come, else requests per second of all
 */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const [address = '', connections = '50', seconds = '10', rate = '0', ...headers] = process.argv.slice(2)
const url = new URL(address)
const request = Buffer.from(
  [`GET ${url.pathname}${url.search} HTTP/1.1`, `host: ${url.host}`, ...headers, '', ''].join('\r\n'),
)
const latencies: number[] = []
let failures = 0
let bytes = 0
const begunAt = performance.now()
const endAt = begunAt + Number(seconds) * 1000

/** One connection, at work until the time is up. */
async function client(index: number): Promise<void> {
  const socket = connect(Number(url.port), url.hostname).setNoDelay(true)
  let missing = 0
  let head = Buffer.alloc(0)
  let done: (failed: boolean) => void = () => undefined
  socket.on('data', (chunk: Buffer) => {
    if (missing > 0) missing -= chunk.length
    else {
      head = Buffer.concat([head, chunk])
      const end = head.indexOf('\r\n\r\n')
      if (end < 0) return
      const text = head.toString('latin1', 0, end)
      const length = /^content-length: (\d+)/im.exec(text)?.[1]
      if (!text.startsWith('HTTP/1.1 200') || length === undefined) return done(true)
      missing = Number(length) - (head.length - end - 4)
      head = Buffer.alloc(0)
    }
    if (missing === 0) done(false)
  })
  const broken = () => done(true)
  socket.on('error', broken).on('close', broken)
  const everyMs = Number(rate) > 0 ? (Number(connections) * 1000) / Number(rate) : 0
  // With a rate the time of a request counts from when it was due: a late answer delays, and does not excuse, the next.
  let dueAt = begunAt + (index / Number(connections)) * everyMs
  while (performance.now() < endAt) {
    const waitMs = dueAt - performance.now()
    if (everyMs > 0 && waitMs > 0) await sleep(waitMs)
    const from = everyMs > 0 ? dueAt : performance.now()
    const failed = await new Promise<boolean>((resolve) => {
      done = resolve
      socket.write(request)
    })
    if (failed) {
      failures++
      break
    }
    latencies.push(performance.now() - from)
    dueAt += everyMs
  }
  bytes += socket.bytesRead
  socket.removeListener('close', broken).destroy()
}

await Promise.all(Array.from({ length: Number(connections) }, (_, index) => client(index)))
latencies.sort((a, b) => a - b)
const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0
const { user, system } = process.cpuUsage()
process.stdout.write(
  JSON.stringify({
    requests: latencies.length,
    seconds: (performance.now() - begunAt) / 1000,
    p50: at(0.5),
    p99: at(0.99),
    max: latencies.at(-1) ?? 0,
    failures,
    bytes,
    cpuMs: (user + system) / 1000,
  }),
)
