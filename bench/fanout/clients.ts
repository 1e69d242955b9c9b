/*
 * Readers of a stream over sockets of their own. Looks for the time at which the hub received what a chunk tells of; some read only the
 * beginning and then no more.
 *
 *   node clients.ts URL READERS STUCK
 *
 * Tells its parent when all are open; asked, how late each message since the last question was, ms.
 */
import { connect, type Socket } from 'node:net'

const [address = '', readers = '1000', stuck = '0'] = process.argv.slice(2)
const url = new URL(address)
const request = `GET ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\n\r\n`
const received = /"op":"age".*?"receivedAt":(\d+)/
let late: number[] = []
let ended = 0

function open(isStuck: boolean): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname, () => socket.write(request))
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      if (isStuck) socket.pause()
      resolve(socket)
      const at = received.exec(text)?.[1]
      if (at !== undefined) late.push(Date.now() - Number(at))
    })
    socket.on('close', () => {
      ended += 1
    })
    socket.on('error', reject)
  })
}

const all = Number(readers) + Number(stuck)
for (let opened = 0; opened < all; ) {
  const some = Math.min(50, all - opened)
  await Promise.all(Array.from({ length: some }, (_, at) => open(opened + at < Number(stuck))))
  opened += some
}
process.on('message', () => {
  process.send?.({ late, ended })
  late = []
})
process.on('disconnect', () => process.exit())
process.send?.({ opened: all })
