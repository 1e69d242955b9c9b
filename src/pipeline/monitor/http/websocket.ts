import type { WebSocket } from 'ws'
import { seconds } from '#model'
import type { Sink } from '../stream/client.ts'
import type { Frame } from '../stream/frame.ts'

/** Bytes that may wait for a client before it counts as slow. */
const BUSY_BYTES = 64 * 1024
const PING_MS = seconds(30)
const MAX_MISSES = 2
const GOING_AWAY = 1001

/** The messages of a stream over a WebSocket; what the client says is read and thrown away. */
export function webSocketSink(socket: WebSocket): Sink {
  const listeners: (() => void)[] = []
  let missed = 0
  socket.on('pong', () => {
    missed = 0
  })
  const pinging = setInterval(() => {
    if (missed >= MAX_MISSES) return socket.terminate()
    missed++
    socket.ping()
  }, PING_MS)
  socket.on('close', () => clearInterval(pinging))
  // What it breaks of our rules (a frame too large) ends it; there is nobody to tell but itself.
  socket.on('error', () => socket.terminate())
  const write = ({ message }: Frame) =>
    socket.send(message, () => {
      if (socket.bufferedAmount <= BUSY_BYTES) for (const listener of listeners) listener()
    })
  return {
    get isBusy() {
      return socket.bufferedAmount > BUSY_BYTES
    },
    write,
    beat: () => undefined, // its pings are signs of life
    end(last) {
      if (socket.bufferedAmount > BUSY_BYTES) return socket.terminate()
      if (last) write(last)
      socket.close(GOING_AWAY)
    },
    onDrain: (listener) => void listeners.push(listener),
  }
}
