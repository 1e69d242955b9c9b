import { createHash } from 'node:crypto'
import { canonicalRow, compareRows, type Row } from '#extract'
import { OutboundGuard } from '#outbound'
import { silentLogger } from '#runtime'
import type { Delivery, Position, SinkContext, Writing } from '../index.ts'

/** What a sink of a test gets: loopback is open, and nothing else beyond the internet. */
export const contextOf = (more: Partial<SinkContext> = {}): SinkContext => ({
  guard: new OutboundGuard({ use: 'sink', allowLoopback: true, allowPrivate: false }),
  writer: 'agent-1',
  directory: '/nonexistent',
  logger: silentLogger,
  semantics: 'strict',
  now: Date.now,
  ...more,
})

export const at = (sequence: number, epoch = 1): Position => ({ epoch: BigInt(epoch), sequence: BigInt(sequence) })

/** A row of a Deployment, told apart by its number. */
export const aRow = (n: number, attributes: Record<string, unknown> = { image: `shop/web:${n}` }): Row => ({
  targetNamespace: 'team-a',
  targetName: 'deployments',
  namespace: `shop-${n % 7}`,
  name: `web-${n}`,
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  uid: `uid-${n}`,
  attributes,
})

export const rowsTo = (count: number): Row[] => Array.from({ length: count }, (_, n) => aRow(n))

export const writingOf = (cluster: string, inventory = 'workloads'): Writing => ({
  cluster,
  namespace: 'team-a',
  inventory,
})

/** A snapshot of these rows. */
export function deliveryOf(
  writing: Writing,
  position: Position,
  rows: readonly Row[],
  more: Partial<Delivery> = {},
): Delivery {
  const sorted = [...rows].sort(compareRows)
  return {
    writing,
    position,
    generation: 1,
    complete: true,
    checksum: createHash('sha256')
      .update(`[${sorted.map(canonicalRow).join(',')}]`)
      .digest('hex'),
    itemCount: sorted.length,
    takenAt: 1_790_000_000_000,
    rows: () => sorted,
    maxPartBytes: 16 * 2 ** 20,
    ...more,
  }
}
