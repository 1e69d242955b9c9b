/*
 * So many clients of the event stream, each a socket that counts frames by their first line and parses nothing: clients must
 * cost less than what they measure.
 */
import { connect } from 'node:net'

const [address = '', streams = '1000', teams = '20'] = process.argv.slice(2)
const url = new URL(address)

const snapshots = new Array<number>(Number(streams)).fill(0)
let lastAccessAt = 0
let bytes = 0
let wanted = Number.POSITIVE_INFINITY

function report(): void {
  if (snapshots.some((count) => count < wanted)) return
  wanted = Number.POSITIVE_INFINITY
  process.send?.({ accessMs: lastAccessAt, bytes })
  bytes = 0
}

function open(index: number): void {
  const socket = connect(Number(url.port), url.hostname)
  const head = [
    'GET /api/v1/stream HTTP/1.1',
    `host: ${url.host}`,
    `x-forwarded-user: person-${index}`,
    `x-forwarded-groups: team-${index % Number(teams)}`,
  ]
  socket.write([...head, '', ''].join('\r\n'))
  let rest = ''
  let inSnapshot = false
  socket.setEncoding('latin1').on('data', (text: string) => {
    bytes += text.length
    // A frame's first line may come in two pieces; its data is on the second line, and ends with an empty one.
    const whole = rest + text
    if (whole.includes('event: access\n')) lastAccessAt = Date.now()
    if (whole.includes('event: snapshot\n')) inSnapshot = true
    if (inSnapshot && whole.endsWith('\n\n\r\n')) {
      inSnapshot = false
      snapshots[index] = (snapshots[index] ?? 0) + 1
      report()
    }
    rest = inSnapshot ? whole.slice(-4) : whole.slice(-16)
    if (whole.includes('event: snapshot\n')) rest = whole.slice(-4)
  })
  socket.on('close', () => {
    process.stderr.write(`stream ${index} ended\n`)
    process.exit(1)
  })
}

process.on('message', ({ await: count }: { await: number }) => {
  wanted = count
  report()
})
process.on('disconnect', () => process.exit())
for (let index = 0; index < Number(streams); index++) open(index)
