import { KOLLECT_API_VERSION } from '#kinds'
import { checksumOf } from '#sinks'
import { packedJson } from '../store/index.ts'
import { exportStatus } from './export-status.ts'
import type { Filter } from './filter.ts'
import { filterMark } from './filter.ts'
import { continueToken, hasMore, type Page, type RowPage } from './page.ts'
import type { Question } from './query.ts'
import type { AwaitedTarget, RowsNow, SeenInventory } from './view.ts'

/** Targets that an answer names; all are counted. */
const MAX_AWAITED = 100

/** What a page of rows says beside them. */
export interface SummaryFacts {
  readonly cluster: string
  readonly question: Pick<Question, 'filter' | 'paging'>
  readonly read: Pick<RowsNow, 'now' | 'asOf' | 'waitsFor'>
  readonly page: RowPage
  /** of the inventory that is named; absent: none is */
  readonly inventories?: readonly SeenInventory[]
}

/** `InventorySummary` as JSON, in pieces: the rows are written as they are kept. */
export function* summaryJson(facts: SummaryFacts): Generator<string> {
  const { cluster, page, inventories, question } = facts
  const { namespace, inventory, clusterInventory } = question.filter
  const head = {
    schemaVersion: KOLLECT_API_VERSION,
    itemCount: page.items.length,
    ...(namespace !== undefined && { namespace }),
    ...(inventory !== undefined && { inventory }),
    ...(clusterInventory !== undefined && { clusterInventory }),
    cluster,
    updatedAt: timeText(facts.read.now),
    checksum: pageChecksum(page),
    ...completeness(facts.read, question.filter),
  }
  yield `${JSON.stringify(head).slice(0, -1)},"items":[`
  let comma = ''
  for (const row of page.items) {
    yield `${comma}${packedJson(row)}`
    comma = ','
  }
  const tail = {
    ...(page.total > 0 && {
      pagination: {
        ...pagination(page, question.paging.limit),
        continue: continueToken(page, filterMark(question.filter)),
      },
    }),
    ...(inventories && { exportStatus: inventories.flatMap((one) => exportStatus(one, facts.read.now)) }),
  }
  const rest = JSON.stringify(tail).slice(1)
  yield rest === '}' ? ']}' : `],${rest}`
}

/** SHA-256 of the rows of a page in canonical JSON, as in an envelope with these items. */
export const pageChecksum = ({ items }: RowPage): string => checksumOf(jsonOf(items))

function* jsonOf(rows: RowPage['items']): Generator<string> {
  for (const row of rows) yield packedJson(row)
}

export const pagination = (page: Page<unknown>, limit: number) => ({
  ...{ limit, offset: page.offset, total: page.total },
  hasMore: hasMore(page),
})

/** Whether there may be more than what is shown, since when, and because of which targets. */
export function completeness({ waitsFor, asOf }: Pick<RowsNow, 'asOf' | 'waitsFor'>, filter: Filter) {
  return {
    complete: waitsFor.length === 0,
    ...(asOf !== undefined && { asOf: timeText(asOf) }),
    ...(waitsFor.length > 0 && awaited(waitsFor, filter)),
  }
}

/** Targets by their names, as far as they are of the namespace that was asked for. */
export function awaited(waitsFor: readonly AwaitedTarget[], { namespace }: Filter) {
  const own = waitsFor.filter(({ key }) => namespace === undefined || key.namespace === namespace)
  return {
    waitsForCount: waitsFor.length,
    waitsFor: own.slice(0, MAX_AWAITED).map(({ key, asOf }) => ({
      ...{ namespace: key.namespace, name: key.name },
      ...(asOf !== undefined && { asOf: timeText(asOf) }),
    })),
  }
}

export const timeText = (ms: number): string => new Date(ms).toISOString()
