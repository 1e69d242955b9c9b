/*
 * Readers of `/sse/health` over sockets of their own, of tenants in turn; some read only the beginning and then no more.
 *
 *   node monitor-clients.ts URL READERS STUCK TENANTS
 *
 * Tells its parent when all are open; asked, how late each frame since the last question was, ms: from the read of usage that it tells of.
 */
import { connect, type Socket } from 'node:net'
import { user } from '../../src/pipeline/monitor/testing/tokens.ts'

const [address = '', ...numbers] = process.argv.slice(2)
const [readers = 1000, stuck = 0, tenants = 1] = numbers.map(Number)
const url = new URL(address)
const measured = /"timestamp":"([^"]+)"/
const tokens = await Promise.all(Array.from({ length: tenants }, (_, at) => user(String(at).padStart(6, '0'))))
let late: number[] = []
let ended = 0

function open(at: number, isStuck: boolean): Promise<Socket> {
  const token = tokens[at % tenants]
  const request = `GET ${url.pathname}?token=${token} HTTP/1.1\r\nhost: ${url.host}\r\n\r\n`
  return new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname, () => socket.write(request))
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      if (isStuck) socket.pause()
      resolve(socket)
      const time = measured.exec(text)?.[1]
      if (time !== undefined) late.push(Date.now() - Date.parse(time))
    })
    socket.on('close', () => {
      ended += 1
    })
    socket.on('error', reject)
  })
}

const all = readers + stuck
for (let opened = 0; opened < all; ) {
  const some = Math.min(50, all - opened)
  await Promise.all(Array.from({ length: some }, (_, at) => open(opened + at, opened + at < stuck)))
  opened += some
}
process.on('message', () => {
  process.send?.({ late, ended })
  late = []
})
process.on('disconnect', () => process.exit())
process.send?.({ opened: all })
