import type { Row } from '#extract'
import { canonicalRow } from '#extract'
import { checksumOf } from '../../documents/envelope.ts'
import { comparePositions, type Position, type RowKey, type Writing } from '../../sink.ts'
import { type EventFacts, eventFacts } from '../headers.ts'
import { keyOf } from '../held.ts'

/** A message as a consumer gets it, in the order of the stream or partition. */
export interface ReadMessage {
  readonly header: (name: string) => string
  readonly body: string
}

interface Inventory {
  readonly position: Position
  readonly rows: ReadonlyMap<string, Row>
}

interface Pending {
  readonly position: Position
  readonly total: number
  readonly parts: Map<number, readonly Row[]>
}

const rowKey = ({ targetNamespace, targetName, namespace, name, uid }: RowKey) =>
  [targetNamespace, targetName, namespace, name, uid].join('\n')

/** A consumer as the guides tell it: of each inventory the newest snapshot of which all parts are there. */
export class EventReader {
  /** newest whole snapshots */
  readonly inventories = new Map<string, Inventory>()
  /** messages of snapshots that were known already, or older */
  repeats = 0
  /** of snapshots that are not whole yet, per inventory */
  readonly #pending = new Map<string, Pending[]>()

  static of(messages: Iterable<ReadMessage>): EventReader {
    const reader = new EventReader()
    for (const message of messages) reader.take(message)
    return reader
  }

  /** Rows of an inventory in their order; undefined where nothing whole is there. */
  rows(writing: Writing): readonly Row[] | undefined {
    const found = this.inventories.get(keyOf(writing))
    return found && [...found.rows.values()]
  }

  take({ header, body }: ReadMessage): void {
    const facts = eventFacts(header)
    if (!facts) return
    const key = keyOf(facts.writing)
    const held = this.inventories.get(key)
    if (held && comparePositions(held.position, facts.position) >= 0) {
      this.repeats++
      return
    }
    const { position, part } = facts
    const pending = this.#pending.get(key) ?? []
    this.#pending.set(key, pending)
    const isOf = (one: Pending) => comparePositions(one.position, position) === 0 && one.total === part.total
    const known = pending.find(isOf)
    const { parts } = known ?? { parts: new Map<number, readonly Row[]>() }
    if (!known) pending.push({ position, total: part.total, parts })
    parts.set(part.index, itemsOf(body, facts))
    if (parts.size < part.total) return
    const all = Array.from({ length: part.total }, (_, at) => parts.get(at + 1) ?? []).flat()
    // What may lack rows takes none away.
    const rows = new Map(facts.complete ? [] : held?.rows)
    for (const row of all) rows.set(rowKey(row), row)
    this.inventories.set(key, { position, rows })
    const newer = pending.filter((one) => comparePositions(one.position, position) > 0)
    this.#pending.set(key, newer)
  }
}

/** @throws where headers, wrapping and envelope contradict each other */
function itemsOf(body: string, { writing, position, complete, part, checksum }: EventFacts): readonly Row[] {
  const { cluster, namespace, schemaVersion, timestamp, payload } = JSON.parse(body)
  const said = [cluster, namespace, schemaVersion, new Date(timestamp).toISOString()]
  const wanted = [writing.cluster, writing.namespace, 'kollect.dev/v1alpha1', payload.exportedAt]
  const head = [payload.epoch, payload.sequence, payload.complete, payload.partIndex ?? 1, payload.partTotal ?? 1]
  const wantedHead = [String(position.epoch), String(position.sequence), complete, part.index, part.total]
  if (JSON.stringify([said, head]) !== JSON.stringify([wanted, wantedHead]))
    throw new Error(`headers say ${JSON.stringify([wanted, wantedHead])}, the message ${JSON.stringify([said, head])}`)
  const sum = checksumOf(payload.items.map(canonicalRow))
  if (payload.checksum !== sum || payload.itemCount !== payload.items.length) throw new Error('the envelope is damaged')
  if (part.total === 1 && checksum !== sum) throw new Error('the checksum of the headers is of something else')
  return payload.items
}
