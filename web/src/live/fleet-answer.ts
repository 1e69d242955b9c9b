import type { FleetPageView, FleetRowView } from '../contract.ts'
import { countedColumns } from '../model/recount.ts'
import { namesOfPacked, packRows, type ShownRow } from './packed-row.ts'
import type { RowsAnswer } from './row-pages.ts'

/** Names a row in a list over clusters. */
export const fleetId = (row: Pick<FleetRowView, 'cluster' | 'id'>): string => `${row.cluster}/${row.id}`

/** Rows over clusters as lists take them. */
export function fleetAnswer({ items, clusters, ...page }: FleetPageView): RowsAnswer & { items: readonly ShownRow[] } {
  return { ...page, items: items.map((row) => ({ ...row, id: fleetId(row), rowId: row.id })), on: clusters }
}

/** The same, packed, with what is needed to unpack it elsewhere. @param body a FleetPageView as JSON */
export function packedFleetAnswer(body: ArrayBuffer) {
  const { items, ...page } = fleetAnswer(JSON.parse(new TextDecoder().decode(body)) as FleetPageView) // the hub's contract tests hold it to this
  const answer = { ...page, items: packRows(items, countedColumns(page.source)) } satisfies RowsAnswer
  return { answer, names: namesOfPacked() }
}

/** What is read beside the page, and what comes back. */
export interface ToRead {
  readonly nth: number
  readonly body: ArrayBuffer
}
export type WasRead = { readonly nth: number } & (ReturnType<typeof packedFleetAnswer> | { readonly failure: string })
