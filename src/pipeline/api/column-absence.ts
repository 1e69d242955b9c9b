import type { ColumnInfo } from '#metricsource'
import { type Absence, type AbsenceRule, absenceOf } from '#model'
import type { VisibleType } from './visible-types.ts'

type Seen = Pick<VisibleType, 'custom' | 'state'>

/**
 * What null means in a column of objects that were read. A field that an object lacks is none; what is computed, measured or
 * summed up is not known, and so is a field where values did not fit their type: null may be one of these.
 * @param on where its rows are seen
 */
export function absenceRule(column: ColumnInfo, on: readonly Seen[]): AbsenceRule {
  const { name, isComputed, isRestricted = false, amount, refersTo = null } = column
  const isUnfit = on.some(
    ({ custom, state }) =>
      // A row that is hidden must not show by it.
      custom.whole && state?.reports.some(({ field, malformed }) => field === name && malformed > 0),
  )
  const usual = column.absence ?? (isComputed || isRestricted || amount ? 'unknown' : 'none')
  return {
    ...{ absence: isUnfit ? 'unknown' : usual, restricted: isRestricted, refersTo },
    ...(column.isMeasured && { measured: true }),
  }
}

/** Why a cell of this column is null where it is. Rows of an older declaration may lack the column. */
export function absenceOn(column: ColumnInfo, type: VisibleType): Absence {
  if (!type.rows.fields.includes(column.name)) return 'unknown'
  return absenceOf(absenceRule(column, [type]), !type.custom.whole, type.measured !== undefined)
}
