import type { IncomingMessage } from 'node:http'
import { get } from 'node:http'
import type { ClusterView, PartView, RowType, RowView, StreamChange, StreamMessage } from '#http'

export interface Frame {
  readonly event: string
  readonly id: string | undefined
  readonly data: Record<string, unknown>
}

/** A client of the stream over a real socket, which may stop reading. */
export class StreamReader {
  /** all but heartbeats, which come between any two */
  readonly frames: Frame[] = []
  heartbeats = 0
  readonly response: IncomingMessage
  closed = false
  lastEventId: string | undefined
  #text = ''
  #wake = (): void => undefined

  private constructor(response: IncomingMessage) {
    this.response = response
    response.setEncoding('utf8')
    response.on('data', (text: string) => this.#take(text))
    response.on('close', () => {
      this.closed = true
      this.#wake()
    })
    response.on('error', () => this.#wake())
  }

  static open(url: string, headers: Record<string, string> = {}): Promise<StreamReader> {
    return new Promise((resolve, reject) => {
      get(url, { headers, agent: false }, (response) => resolve(new StreamReader(response))).on('error', reject)
    })
  }

  #take(text: string): void {
    this.#text += text
    const blocks = this.#text.split('\n\n')
    this.#text = blocks.pop() ?? ''
    for (const block of blocks) {
      const fields = new Map(block.split('\n').map((line) => line.split(/: (.*)/s, 2) as [string, string]))
      const data = fields.get('data')
      if (data === undefined) continue
      const id = fields.get('id')
      if (id !== undefined) this.lastEventId = id
      const event = fields.get('event') ?? ''
      if (event === 'heartbeat') this.heartbeats += 1
      else this.frames.push({ event, id, data: JSON.parse(data) as Record<string, unknown> })
    }
    this.#wake()
  }

  /** Resolves when `is` holds of what arrived; rejects after five seconds. */
  async until(is: (frames: readonly Frame[]) => boolean, withinMs = 20_000): Promise<void> {
    const end = Date.now() + withinMs
    while (!is(this.frames)) {
      if (Date.now() > end)
        throw new Error(`the stream did not say so; it said ${this.frames.map(({ event }) => event)}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        setTimeout(resolve, 100)
      })
    }
  }

  close(): void {
    this.response.destroy()
  }
}

/** What a page holds after the messages of a stream. */
export class Picture {
  readonly clusters = new Map<string, ClusterView>()
  readonly rows = new Map<string, Omit<RowView, 'freshness'>>()
  readonly parts = new Map<string, PartView>()
  readonly events: unknown[] = []
  snapshots = 0

  apply({ event, data }: Frame): void {
    const message = { kind: event, ...data } as StreamMessage
    if (message.kind === 'snapshot') this.#reset(message)
    if (message.kind === 'change') for (const change of message.changes) this.#change(change)
  }

  #reset({ clusters, rows }: Extract<StreamMessage, { kind: 'snapshot' }>): void {
    this.snapshots += 1
    for (const map of [this.clusters, this.rows, this.parts]) map.clear()
    for (const view of clusters) this.clusters.set(view.name, view)
    for (const { type, cluster, items, part } of rows) {
      for (const view of items) this.#put(type, cluster, view)
      if (part) this.parts.set(`${type}/${cluster}`, part)
    }
  }

  #put(type: RowType, cluster: string, { freshness: _, ...view }: RowView): void {
    this.rows.set(`${type}/${cluster}/${view.name}`, view)
  }

  #change(change: StreamChange): void {
    if (change.op === 'event') this.events.push(change.view)
    else if (change.op === 'part') this.parts.set(`${change.type}/${change.cluster}`, change.part)
    else if (change.type !== 'cluster') {
      if (change.op === 'put') this.#put(change.type, change.cluster, change.view)
      else this.rows.delete(`${change.type}/${change.cluster}/${change.name}`)
    } else if (change.op === 'put') this.clusters.set(change.view.name, change.view)
    else {
      this.clusters.delete(change.cluster)
      for (const map of [this.rows, this.parts]) {
        for (const key of map.keys()) if (key.split('/')[1] === change.cluster) map.delete(key)
      }
    }
  }

  /** Comparable whatever the order of arrival. */
  get facts(): unknown {
    const sorted = (map: ReadonlyMap<string, unknown>) => [...map].toSorted(([a], [b]) => (a < b ? -1 : 1))
    return { clusters: sorted(this.clusters), rows: sorted(this.rows), parts: sorted(this.parts) }
  }
}
