import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { AccessView, Principal } from '#access'
import type { EventId } from '#events'
import type { RowType } from '#http'
import type { StateReader } from '#state'
import { changeTexts, Dirty, Held, hold, movedTexts, type Subscription } from './dirty.ts'
import { Frame } from './stream-frame.ts'
import type { StreamIds } from './stream-ids.ts'
import type { StreamWriter } from './stream-writer.ts'
import { rowTypes, type Views, type VisibleCluster } from './views.ts'

/** One snapshot serves all who come within this while nothing moved. */
const sameSnapshotMs = 250
/** One open stream. */
export interface Client {
  group: StreamGroup
  readonly principal: Principal
  readonly sessionId: string | undefined
  /** ms since the Unix epoch: when what the stream stands on ends */
  readonly endsAt: number
  /** when it is to come again, so that who asks is asked again */
  readonly closesAt: number
  readonly response: ServerResponse
  readonly writer: StreamWriter
  /** it has a snapshot, or resumed */
  ready: boolean
  /** unsent bytes above which it is too slow */
  limit: number
}

interface GroupParts {
  readonly state: StateReader
  readonly views: Views
  readonly ids: StreamIds
}

/** What is asked of a stream. */
export interface Asked {
  readonly clusters: ReadonlySet<string>
  readonly types: ReadonlySet<RowType>
}

export const groupKey = (accessView: AccessView, { clusters, types }: Asked): string =>
  JSON.stringify([accessView.fingerprint, [...clusters].sort(), [...types].sort()])

/** Everyone who gets the same bytes: the same question by the same access view. */
export class StreamGroup implements Subscription {
  readonly key: string
  /** part of the ids of this group: another subscription or another access view cannot resume with them */
  readonly mark: string
  readonly clients = new Set<Client>()
  readonly clusters: ReadonlySet<string>
  readonly types: ReadonlySet<RowType>
  readonly held = new Held()
  accessView: AccessView
  /** since when it cannot be found out what they see: nothing is sent; undefined: it can */
  blindSince: number | undefined
  readonly #parts: GroupParts
  /** as long as nothing moved */
  #snapshot:
    | { readonly frame: Frame; readonly version: number; readonly last: EventId; readonly at: number }
    | undefined

  constructor(parts: GroupParts, accessView: AccessView, asked: Asked) {
    this.#parts = parts
    this.accessView = accessView
    this.clusters = asked.clusters
    this.types = asked.types
    this.key = groupKey(accessView, asked)
    this.mark = createHash('sha256').update(this.key).digest('base64url').slice(0, 16)
  }

  readonly see = (name: string): VisibleCluster | undefined => {
    const cluster = this.#parts.state.cluster(name)
    return cluster && this.#parts.views.of(this.accessView, cluster)
  }

  /** Those who hold something. */
  get ready(): Client[] {
    return [...this.clients].filter(({ ready }) => ready)
  }

  get isBlind(): boolean {
    return this.blindSince !== undefined
  }

  /**
   * The frame that tells what moved, for all who hold what the group holds.
   * @param place undefined: the frame is none to resume at
   * @returns undefined where nothing of it is seen
   */
  changes(dirty: Dirty, now: number, place: EventId | undefined): Frame | undefined {
    const texts = changeTexts(dirty, this, now)
    if (texts.length === 0) return undefined
    this.#snapshot = undefined
    return this.#changeFrame(texts, now, place)
  }

  /** The same for one who was away: only where nothing is hidden from the group. */
  missed(dirty: Dirty, now: number, place: EventId): Frame | undefined {
    const texts = movedTexts(dirty, this, now)
    return texts.length === 0 ? undefined : this.#changeFrame(texts, now, place)
  }

  #changeFrame(texts: readonly string[], now: number, place: EventId | undefined): Frame {
    const head = place === undefined ? '' : `id: ${this.#idOf(place)}\n`
    return new Frame(`${head}event: change\ndata: {"changes":[${texts.join(',')}],"now":${now}}\n\n`)
  }

  #idOf(place: EventId): string {
    return this.#parts.ids.seal({ place, mark: this.mark })
  }

  /** What state says and the group does not hold: state may be ahead of what the bus has told so far. */
  ahead(): Dirty {
    const { state } = this.#parts
    const ahead = new Dirty()
    for (const cluster of state.clusters())
      if (this.held.clusters.get(cluster.name) !== cluster) ahead.clusters.add(cluster.name)
    for (const name of this.held.clusters.keys()) if (!state.cluster(name)) ahead.clusters.add(name)
    return ahead
  }

  /** The group holds what is seen now: for one that nobody read yet. */
  fill(): void {
    this.held.clear()
    for (const cluster of this.#seen()) hold(this, cluster)
  }

  /** A snapshot that is hardly older than `now`, if there is one. */
  kept(last: EventId, now: number): Frame | undefined {
    const known = this.#snapshot
    if (!known || known.version !== this.#parts.state.version() || known.last !== last) return undefined
    return now - known.at < sameSnapshotMs ? known.frame : undefined
  }

  /**
   * Everything that is seen now.
   * @param last the place on the bus whose changes it holds
   */
  snapshot(last: EventId, now: number): Frame {
    const clusters = this.#seen()
    const rows = clusters
      .filter(({ state }) => this.clusters.has(state.name))
      .flatMap((cluster) => rowTypes.filter((type) => this.types.has(type)).map((type) => rowsText(cluster, type)))
    const texts = clusters.map((cluster) => cluster.json(now)).join(',')
    const frame = new Frame(
      `id: ${this.#idOf(last)}\nevent: snapshot\ndata: {"clusters":[${texts}],"rows":[${rows.join(',')}],"now":${now}}\n\n`,
    )
    this.#snapshot = { frame, version: this.#parts.state.version(), last, at: now }
    return frame
  }

  #seen(): VisibleCluster[] {
    return this.#parts.state.clusters().flatMap(({ name }) => this.see(name) ?? [])
  }
}

function rowsText(cluster: VisibleCluster, type: RowType): string {
  const items = [...cluster.rows(type).values()].map(({ json }) => json).join(',')
  const name = JSON.stringify(cluster.state.name)
  return `{"type":"${type}","cluster":${name},"items":[${items}],"part":${JSON.stringify(cluster.part(type))}}`
}
