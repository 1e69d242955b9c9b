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
  /** an address that has four turns a second at most, each given to any of its connections that wait */
  readonly isSlow: (address: string) => boolean
  /** begins the handshake of a connection whose first bytes have come; they still lie in its buffer */
  readonly begin: (socket: Socket) => void
  readonly onRefused: () => void
}

/** From one turn of an address that is slow to its next, ms. */
const SLOW_TURN_MS = 250
/** Connections that came together are not all closed together. */
const FIRST_BYTE_SPREAD = 0.25

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
  /** of addresses that are slow: until their next turn may come */
  readonly #pauses = new Map<string, NodeJS.Timeout>()
  readonly #turns = new Map<Socket, { readonly address: string; readonly timer: NodeJS.Timeout }>()

  constructor(options: HandshakesOptions) {
    this.#options = options
  }

  /** @param socket paused: nothing was read of it */
  arrived(socket: Socket): void {
    const address = socket.remoteAddress ?? ''
    this.#note(address, socket)
    const patienceMs = this.#options.limits.firstByteMs * (1 - Math.random() * FIRST_BYTE_SPREAD)
    const silence = setTimeout(() => this.#refuse(socket), patienceMs)
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
    for (const pause of this.#pauses.values()) clearTimeout(pause)
    this.#turns.clear()
    this.#pauses.clear()
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
    for (const [address, all] of this.#waiting) {
      if ((held.get(address) ?? 0) >= share || this.#pauses.has(address)) continue
      const sockets = all.filter(({ destroyed }) => !destroyed)
      const isSlow = this.#options.isSlow(address)
      const [socket] = sockets.splice(isSlow ? Math.floor(Math.random() * sockets.length) : 0, 1)
      this.#waiting.delete(address)
      if (sockets.length > 0) this.#waiting.set(address, sockets)
      if (!socket) continue
      if (isSlow) this.#pause(address)
      return { socket, address }
    }
    return undefined
  }

  #pause(address: string): void {
    const over = () => {
      this.#pauses.delete(address)
      this.#next()
    }
    this.#pauses.set(address, setTimeout(over, SLOW_TURN_MS))
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
