import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { describe, expect, it, vi } from 'vitest'
import { Handshakes } from './handshakes.ts'

const limits = { maxHandshakes: 64, maxUnfinished: 1_000, firstByteMs: 10_000, turnMs: 1_000 }

/** A connection whose first bytes are there, or come never. */
function aSocket(remoteAddress: string, words = ''): Socket {
  const socket = Object.assign(new Duplex({ read: () => undefined }), { remoteAddress })
  if (words !== '') socket.push(words)
  return socket as unknown as Socket
}

describe('handshakes', () => {
  it('of an address that is slow begin four times a second, with any of those that wait; of others at once', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const begun: Socket[] = []
      const begin = (socket: Socket) => {
        begun.push(socket)
        handshakes.finished(socket)
      }
      const isSlow = (address: string) => address === 'slow'
      const handshakes = new Handshakes({ limits, isSlow, begin, onRefused: () => undefined })
      const slow = Array.from({ length: 100 }, () => aSocket('slow', 'hello'))
      const others = Array.from({ length: 20 }, () => aSocket('other', 'hello'))
      for (const socket of [...slow, ...others]) handshakes.arrived(socket)
      for (const socket of slow.slice(40)) socket.destroy()
      await new Promise((resolve) => setImmediate(resolve))
      expect(others.every((socket) => begun.includes(socket))).toBe(true)
      expect(begun.length).toBe(others.length + 1)
      await vi.advanceTimersByTimeAsync(5_000)
      const served = begun.filter((socket) => slow.includes(socket))
      expect(served.length).toBe(21)
      expect(new Set(served).size).toBe(21)
      expect(served.slice(1).every((socket) => !socket.destroyed)).toBe(true)
      expect(served).not.toEqual(slow.slice(0, 21))
      handshakes.close()
    } finally {
      vi.useRealTimers()
    }
  })

  it('that never begin are ended one by one, though they came together', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const ignore = () => undefined
      const handshakes = new Handshakes({ limits, isSlow: () => false, begin: ignore, onRefused: ignore })
      const sockets = Array.from({ length: 300 }, () => aSocket('silent'))
      for (const socket of sockets) handshakes.arrived(socket)
      const open = () => sockets.filter(({ destroyed }) => !destroyed).length
      let most = 0
      for (let ms = 0; ms < 10_100; ms += 50) {
        const before = open()
        await vi.advanceTimersByTimeAsync(50)
        most = Math.max(most, before - open())
      }
      expect(open()).toBe(0)
      expect(most).toBeLessThan(30)
    } finally {
      vi.useRealTimers()
    }
  })
})
