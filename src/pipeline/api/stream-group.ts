import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Principal, Sight } from '#access'
import type { EventId } from '#events'
import type { RowType } from '#http'
import type { StateReader } from '#state'
import { changeTexts, Dirty, Held, hold, movedTexts, type Subscription } from './dirty.ts'
import { Frame } from './stream-frame.ts'
import type { StreamIds } from './stream-ids.ts'
import type { StreamWriter } from './stream-writer.ts'
import { type Row, rowTypes, type Views, type VisibleCluster } from './views.ts'

/** One snapshot serves all who come within this while nothing moved. */
const sameSnapshotMs = 250
/** Rows of a type that come with a snapshot in parts: more than a screen shows. */
const firstRows = 300
/** Rows of each further part. */
const partRows = 1000

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
  /** long lists of rows come after the snapshot, in parts */
  readonly inParts: boolean
}

export const groupKey = (sight: Sight, { clusters, types, inParts }: Asked): string =>
  JSON.stringify([sight.fingerprint, [...clusters].sort(), [...types].sort(), inParts])

/** Everyone who gets the same bytes: the same question by the same sight. */
export class StreamGroup implements Subscription {
  readonly key: string
  /** part of the ids of this group: another subscription or another sight cannot resume with them */
  readonly mark: string
  readonly clients = new Set<Client>()
  readonly clusters: ReadonlySet<string>
  readonly types: ReadonlySet<RowType>
  readonly inParts: boolean
  readonly held = new Held()
  sight: Sight
  /** since when it cannot be found out what they see: nothing is sent; undefined: it can */
  blindSince: number | undefined
  readonly #parts: GroupParts
  /** as long as nothing moved */
  #snapshot:
    | { readonly frames: readonly Frame[]; readonly version: number; readonly last: EventId; readonly at: number }
    | undefined

  constructor(parts: GroupParts, sight: Sight, asked: Asked) {
    this.#parts = parts
    this.sight = sight
    this.clusters = asked.clusters
    this.types = asked.types
    this.inParts = asked.inParts
    this.key = groupKey(sight, asked)
    this.mark = createHash('sha256').update(this.key).digest('base64url').slice(0, 16)
  }

  readonly see = (name: string): VisibleCluster | undefined => {
    const cluster = this.#parts.state.cluster(name)
    return cluster && this.#parts.views.of(this.sight, cluster)
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
  kept(last: EventId, now: number): readonly Frame[] | undefined {
    const known = this.#snapshot
    if (!known || known.version !== this.#parts.state.version() || known.last !== last) return undefined
    return now - known.at < sameSnapshotMs ? known.frames : undefined
  }

  /**
   * Everything that is seen now, in frames that belong together; only the last of them names a place to resume at.
   * @param last the place on the bus whose changes it holds
   */
  snapshot(last: EventId, now: number): readonly Frame[] {
    const clusters = this.#seen()
    const lists = clusters
      .filter(({ state }) => this.clusters.has(state.name))
      .flatMap((cluster) => rowTypes.filter((type) => this.types.has(type)).map((type) => listOf(cluster, type)))
    const parts = this.inParts ? lists.flatMap(partsOf) : []
    const rows = lists.map((list) => rowsText(list, this.inParts))
    const texts = clusters.map((cluster) => cluster.json(now)).join(',')
    // An empty id takes back the one before: half a snapshot is nothing to resume after.
    const id = this.#idOf(last)
    const frames = [
      new Frame(
        `id: ${parts.length === 0 ? id : ''}\nevent: snapshot\ndata: {"clusters":[${texts}],"rows":[${rows.join(',')}],"now":${now}}\n\n`,
      ),
      ...parts.map(
        (part, place) =>
          new Frame(
            () => `${place === parts.length - 1 ? `id: ${id}\n` : ''}event: rows\ndata: ${partText(part, now)}\n\n`,
            true,
          ),
      ),
    ]
    this.#snapshot = { frames, version: this.#parts.state.version(), last, at: now }
    return frames
  }

  #seen(): VisibleCluster[] {
    return this.#parts.state.clusters().flatMap(({ name }) => this.see(name) ?? [])
  }
}

interface RowList {
  readonly cluster: VisibleCluster
  readonly type: RowType
  readonly rows: readonly Row[]
}

/** Those that need a look come first: a page that shows the worst first has them at once. */
function listOf(cluster: VisibleCluster, type: RowType): RowList {
  const rows = [...cluster.rows(type).values()]
  return { cluster, type, rows: rows.length <= firstRows ? rows : [...rows.filter(needsLook), ...rows.filter(isWell)] }
}

const isWell = (row: Row): boolean => !needsLook(row)

function needsLook({ snapshot }: Row): boolean {
  if ('roles' in snapshot) return snapshot.ready !== 'ready'
  if ('replicas' in snapshot) return snapshot.ready < snapshot.replicas
  if ('csv' in snapshot) return snapshot.status !== 'Succeeded'
  return 'degraded' in snapshot && (snapshot.degraded || !snapshot.available)
}

const itemsText = (rows: readonly Row[]): string => rows.map(({ json }) => json).join(',')

function rowsText({ cluster, type, rows }: RowList, inParts: boolean): string {
  const items = itemsText(inParts ? rows.slice(0, firstRows) : rows)
  const total = inParts ? `,"total":${rows.length}` : ''
  return `{"type":"${type}",${clusterText(cluster)},"items":[${items}],"part":${JSON.stringify(cluster.part(type))}${total}}`
}

interface RowPart extends RowList {
  readonly isLast: boolean
}

function partsOf(list: RowList): RowPart[] {
  const parts: RowPart[] = []
  for (let from = firstRows; from < list.rows.length; from += partRows)
    parts.push({ ...list, rows: list.rows.slice(from, from + partRows), isLast: from + partRows >= list.rows.length })
  return parts
}

const partText = ({ cluster, type, rows, isLast }: RowPart, now: number): string =>
  `{"type":"${type}",${clusterText(cluster)},"items":[${itemsText(rows)}],"last":${isLast},"now":${now}}`

const clusterText = ({ state }: VisibleCluster): string => `"cluster":${JSON.stringify(state.name)}`
