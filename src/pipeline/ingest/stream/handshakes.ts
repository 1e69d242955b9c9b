import type { Socket } from 'node:net'

export interface HandshakeLimits {
  /** at once; an address has half of them at most */
  readonly maxHandshakes: number
  /** connections that have not finished theirs; beyond it the oldest of the address with most of them goes */
  readonly maxUnfinished: number
  /** from the connection to its first byte */
  readonly firstByteMs: number
  /** how long one holds its turn; it may go on without it */
  readonly turnMs: number
}

export interface HandshakesOptions {
  readonly limits: HandshakeLimits
  /** begins the handshake of a connection whose first bytes have come; they still lie in its buffer */
  readonly begin: (socket: Socket) => void
  readonly onRefused: () => void
}

/**
 * Who may shake hands now. A connection that says nothing takes no turn; turns go round the addresses, so that one that opens
 * many waits behind itself; who does not finish gives the turn back and goes on without it. Bounded by what is closed: silence,
 * and the oldest of the address with most unfinished ones.
 *
 *   silent ──first byte──► waiting ──turn──► shaking ──turn over──► shaking on, without it ──► finished or closed
 */
export class Handshakes {
  readonly #options: HandshakesOptions
  /** by address, in the order of their next turn */
  readonly #waiting = new Map<string, Socket[]>()
  /** by address, oldest first */
  readonly #unfinished = new Map<string, Set<Socket>>()
  #count = 0
  readonly #turns = new Map<Socket, { readonly address: string; readonly timer: NodeJS.Timeout }>()

  constructor(options: HandshakesOptions) {
    this.#options = options
  }

  /** @param socket paused: nothing was read of it */
  arrived(socket: Socket): void {
    const address = socket.remoteAddress ?? ''
    this.#note(address, socket)
    const silence = setTimeout(() => this.#refuse(socket), this.#options.limits.firstByteMs)
    const ready = () => {
      clearTimeout(silence)
      if (socket.destroyed) return
      // `end` without a byte comes this way too.
      if (socket.readableLength === 0) return void this.#refuse(socket)
      this.#waiting.set(address, [...(this.#waiting.get(address) ?? []), socket])
      this.#next()
    }
    socket.once('readable', ready)
    socket.once('close', () => {
      clearTimeout(silence)
      socket.off('readable', ready)
      this.finished(socket)
    })
  }

  /** It may speak now, or is gone. */
  finished(socket: Socket): void {
    const address = socket.remoteAddress ?? this.#addressOf(socket)
    const all = this.#unfinished.get(address)
    if (all?.delete(socket)) this.#count--
    if (all?.size === 0) this.#unfinished.delete(address)
    this.#giveBack(socket)
  }

  close(): void {
    for (const { timer } of this.#turns.values()) clearTimeout(timer)
    this.#turns.clear()
    this.#waiting.clear()
  }

  #note(address: string, socket: Socket): void {
    const all = this.#unfinished.get(address) ?? new Set()
    this.#unfinished.set(address, all.add(socket))
    this.#count++
    if (this.#count <= this.#options.limits.maxUnfinished) return
    const [busiest] = [...this.#unfinished.values()].sort((a, b) => b.size - a.size)
    const [oldest] = busiest ?? []
    if (oldest) this.#refuse(oldest)
  }

  #addressOf(socket: Socket): string {
    for (const [address, all] of this.#unfinished) if (all.has(socket)) return address
    return ''
  }

  #next(): void {
    const { maxHandshakes, turnMs } = this.#options.limits
    while (this.#turns.size < maxHandshakes) {
      const found = this.#take()
      if (!found) return
      const { socket, address } = found
      const timer = setTimeout(() => this.#giveBack(socket), turnMs)
      this.#turns.set(socket, { address, timer })
      this.#options.begin(socket)
    }
  }

  /** The next in turn; its address goes to the end of the row. */
  #take(): { readonly socket: Socket; readonly address: string } | undefined {
    const share = Math.max(1, Math.ceil(this.#options.limits.maxHandshakes / 2))
    const held = new Map<string, number>()
    for (const { address } of this.#turns.values()) held.set(address, (held.get(address) ?? 0) + 1)
    for (const [address, sockets] of this.#waiting) {
      if ((held.get(address) ?? 0) >= share) continue
      const socket = sockets.shift()
      this.#waiting.delete(address)
      if (sockets.length > 0) this.#waiting.set(address, sockets)
      if (!socket || socket.destroyed) return this.#take()
      return { socket, address }
    }
    return undefined
  }

  #giveBack(socket: Socket): void {
    const turn = this.#turns.get(socket)
    if (!turn) return
    clearTimeout(turn.timer)
    this.#turns.delete(socket)
    this.#next()
  }

  #refuse(socket: Socket): void {
    this.#options.onRefused()
    socket.destroy()
  }
}
