import type { AccessView } from '#access'
import type { ClusterState } from '#model'
import type { Steps } from '#runtime'
import { Items, jsonText, Members } from '../json.ts'
import type { Kind, Pictures } from '../pictures.ts'
import { type DeadBand, SentPicture } from './delta.ts'
import { Body } from './frame.ts'

/** How the snapshots of one kind are put: bare, in the envelope of `/sse/health`, or in that of the fleet. */
export type Form = 'bare' | 'envelope' | 'fleet'

export interface FeedOptions {
  readonly pictures: Pictures
  readonly kind: Kind
  /** whole snapshots come no more often, ms */
  readonly refreshMs: number
  readonly band: DeadBand
  /** what all feeds of the cluster keep for clients that come back */
  readonly window: Window
}

/** Bytes of differences that are kept for one cluster. */
export interface Window {
  bytes: number
}

interface Entry {
  readonly tick: number
  readonly at: number
  readonly body: Body
}

const WINDOW_MS = 600_000
const WINDOW_BYTES = 8 * 2 ** 20
const TYPES: Readonly<Record<Kind, string>> = { nodes: 'cluster', pods: 'pods' }

/** One kind of one cluster through one access view: made once per tick, however many follow it. */
export class Feed {
  readonly #options: FeedOptions
  readonly #picture: SentPicture
  #bodies:
    | { readonly text: string; readonly mark: string; readonly at: number; readonly forms: Map<Form, Body> }
    | undefined
  #seen: { readonly cluster: ClusterState | undefined; readonly stale: boolean } | undefined
  #log: Entry[] = []
  /** tick of the oldest picture that differences lead on from; undefined: nobody asked for differences yet */
  #since: number | undefined
  #advancedAt: number | undefined
  #advanced: ClusterState | undefined
  #snapshot: { readonly mark: string; readonly body: Body } | undefined
  usedAt = 0

  constructor(options: FeedOptions) {
    this.#options = options
    this.#picture = new SentPicture(options.band)
  }

  /** The newest whole snapshot. The very same body where nothing is new. */
  *body(cluster: ClusterState | undefined, view: AccessView, form: Form, now: number): Steps<Body> {
    this.usedAt = now
    yield* this.#renew(cluster, view, now)
    const made = this.#bodies
    const known = made?.forms.get(form)
    if (known) return known
    const body = new Body(enveloped(made?.text ?? '', this.#options.kind, form, cluster?.name))
    made?.forms.set(form, body)
    return body
  }

  /** Leads the picture that is followed by differences on to now. */
  *advance(cluster: ClusterState, view: AccessView, tick: number, now: number): Steps<void> {
    this.usedAt = now
    // Within a tick it stands still: who was told of that tick would miss what came after.
    if (this.#advancedAt === tick) return
    this.#advancedAt = tick
    const { pictures, kind } = this.#options
    if (this.#advanced === cluster && this.#picture.isExact) return
    const delta = yield* this.#picture.advance(pictures.each(cluster, view, kind), now)
    this.#advanced = cluster
    if (this.#since === undefined) {
      this.#since = tick
      return
    }
    if (!delta) return
    const { upsert, remove } = delta
    const document = Members.of({ ...this.#head(cluster), upsert: new Items(upsert), remove: new Items(remove) })
    const body = new Body(yield* jsonText(document), 'delta')
    this.#log.push({ tick, at: now, body })
    this.#options.window.bytes += body.data.length
    this.#trim(now)
  }

  /** What is followed, whole: the differences of later ticks lead on from it. */
  *snapshot(cluster: ClusterState): Steps<Body> {
    const head = { ...this.#head(cluster), stale: this.#options.pictures.isStale(cluster, this.#options.kind) }
    const mark = `${this.#log.at(-1)?.tick} ${this.#since} ${head.timestamp} ${head.stale}`
    if (this.#snapshot?.mark === mark) return this.#snapshot.body
    const document = Members.of({ ...head, items: new Items(this.#picture.items()) })
    const body = new Body(yield* jsonText(document), 'snapshot')
    this.#snapshot = { mark, body }
    return body
  }

  /** Whether who holds the picture of that tick can be led on from it. */
  covers(tick: number): boolean {
    return this.#since !== undefined && this.#since <= tick
  }

  after(tick: number): readonly Body[] {
    return this.#log.filter((entry) => entry.tick > tick).map(({ body }) => body)
  }

  /** Gives back what it kept. */
  close(): void {
    for (const { body } of this.#log) this.#options.window.bytes -= body.data.length
    this.#log = []
  }

  #head(cluster: ClusterState) {
    const { kind, pictures } = this.#options
    return { cluster: cluster.name, kind, timestamp: pictures.timestamp(cluster, kind) }
  }

  #trim(now: number): void {
    const { window } = this.#options
    for (;;) {
      const [oldest] = this.#log
      if (!oldest || (now - oldest.at <= WINDOW_MS && window.bytes <= WINDOW_BYTES)) return
      this.#log.shift()
      window.bytes -= oldest.body.data.length
      this.#since = oldest.tick
    }
  }

  *#renew(cluster: ClusterState | undefined, view: AccessView, now: number): Steps<void> {
    const { pictures, kind, refreshMs } = this.#options
    const stale = pictures.isStale(cluster, kind)
    if (this.#bodies && this.#seen?.cluster === cluster && this.#seen?.stale === stale) return
    const mark = `${pictures.timestamp(cluster, kind)} ${stale && kind === 'nodes'}`
    // Between two reads of usage whole snapshots are made no more often than at the refresh.
    if (this.#bodies && this.#bodies.mark === mark && now - this.#bodies.at < refreshMs) return
    this.#seen = { cluster, stale }
    const text = yield* jsonText(pictures.snapshot(cluster, view, kind))
    if (this.#bodies?.text !== text) this.#bodies = { text, mark, at: now, forms: new Map() }
  }
}

function enveloped(text: string, kind: Kind, form: Form, cluster: string | undefined): string {
  if (form === 'bare') return text
  const name = form === 'fleet' ? `"cluster":${JSON.stringify(cluster)},` : ''
  return `{"type":"${TYPES[kind]}",${name}"payload":${text}}`
}
