import type { Frame } from './stream-frame.ts'
import { beginning, type Client, type Progress } from './stream-group.ts'
import type { FleetHistory } from './stream-history.ts'
import { snapshotTurnMs } from './stream-limits.ts'

interface BacklogParts {
  readonly history: FleetHistory
  readonly fewBytes: number
  readonly now: () => number
  /** in the history: what all who are ready hold */
  readonly place: () => number
  readonly isLoading: () => boolean
  readonly write: (client: Client, frame: Frame) => void
  readonly later: (ms: number, work: () => void) => void
  /** what is gathered goes to those who are ready */
  readonly flush: () => void
}

/** Clients that lack something: they just came, came back with an id, or were too slow. Each is told in its own time, and in turns. */
export class Backlog {
  readonly #parts: BacklogParts
  readonly #waiting = new Set<Client>()
  #drawing = false

  constructor(parts: BacklogParts) {
    this.#parts = parts
  }

  wake(client: Client): void {
    if (client.group.ready.has(client) || !client.group.clients.has(client)) return
    this.#waiting.add(client)
    this.draw()
  }

  forget(client: Client): void {
    this.#waiting.delete(client)
  }

  /** Tells a client what it lacks, as long as it takes it and others have their turn. */
  pump(client: Client, until = performance.now() + snapshotTurnMs): void {
    const { group, writer } = client
    this.#waiting.delete(client)
    if (group.ready.has(client) || !group.clients.has(client) || this.#parts.isLoading()) return
    if (group.isBlind) {
      this.#waiting.add(client)
      return
    }
    while (writer.waitingBytes <= this.#parts.fewBytes) {
      if (!this.#tellMore(client)) {
        this.#settle(client)
        return
      }
      if (performance.now() > until) {
        this.#waiting.add(client)
        this.draw()
        return
      }
    }
  }

  /** It holds the newest. */
  #settle(client: Client): void {
    const { group } = client
    if (group.ready.size === 0) group.fill()
    group.ready.add(client)
    if (group.feeds.length > 0) this.#parts.write(client, group.synced(this.#parts.now()))
  }

  /** @returns false where it holds everything */
  #tellMore(client: Client): boolean {
    const { fleet, rows } = client
    if (fleet && fleet.place !== this.#parts.place()) {
      this.tellFleet(client, fleet)
      return true
    }
    return rows.some((part, query) => this.#tellRows(client, part, query))
  }

  /** What moved since the place it holds, or everything. */
  tellFleet(client: Client, part: Progress): void {
    const { group } = client
    const now = this.#parts.now()
    const past = part.place === undefined ? undefined : this.#parts.history.since(part.place)
    const missed = past ? group.missed(past, now) : 'anew'
    const frame = missed === 'anew' ? group.snapshot(now) : missed
    part.place = this.#parts.place()
    if (!frame) return
    // What moves meanwhile waits behind it.
    client.limit += frame.bytes
    this.#parts.write(client, frame)
  }

  /** @returns whether there was something to do */
  #tellRows(client: Client, part: Progress, query: number): boolean {
    const feed = client.group.feeds[query]
    if (!feed || part.isEnded) return false
    feed.advance()
    if (feed.ended) {
      part.isEnded = true
      part.snapshot = undefined
      this.#parts.write(client, feed.endFrame(query))
      return true
    }
    if (part.epoch !== feed.epoch) Object.assign(part, beginning(undefined, feed.epoch))
    if (part.place === undefined && !part.snapshot) {
      part.snapshot = feed.snapshot(part.isLost)
      part.next = 0
      return true
    }
    if (part.snapshot) {
      const frame = part.snapshot.frame(part.next, query)
      part.next += 1
      if (frame) {
        client.limit += frame.bytes
        this.#parts.write(client, frame)
      } else {
        part.place = part.snapshot.place
        part.snapshot = undefined
      }
      return true
    }
    if (part.place !== undefined && part.place === feed.place) {
      if (!part.isAlsoDue) return false
      part.isAlsoDue = false
      const also = feed.alsoFrame(query)
      if (also) this.#parts.write(client, also)
      return also !== undefined
    }
    if (part.place === undefined) return false
    const step = feed.since(part.place)
    part.isLost = step === undefined
    part.isAlsoDue ||= part.isLost
    part.place = step?.to
    const frame = step?.frame(query)
    if (frame) this.#parts.write(client, frame)
    return true
  }

  /** Goes on with all who lack something, a few at a time. */
  draw(): void {
    if (this.#drawing || this.#waiting.size === 0) return
    this.#drawing = true
    this.#parts.later(0, () => {
      this.#drawing = false
      this.#parts.flush()
      const until = performance.now() + snapshotTurnMs
      for (const client of [...this.#waiting]) {
        if (performance.now() > until) break
        this.pump(client, until)
      }
      if ([...this.#waiting].some(({ group }) => !group.isBlind)) this.draw()
    })
  }
}
