import type { ColumnInfo, FieldType } from './types.ts'

type Unit = ColumnInfo['unit']

const OF_TYPE: Readonly<Partial<Record<FieldType | 'any', Unit>>> = { bytes: 'bytes', cpu: 'cores', timestamp: 'time' }
const OF_WORD: Readonly<Record<string, Unit>> = {
  byte: 'bytes',
  bytes: 'bytes',
  core: 'cores',
  cores: 'cores',
  percent: 'percent',
  percentage: 'percent',
  pct: 'percent',
  second: 'seconds',
  seconds: 'seconds',
  secs: 'seconds',
}

/** The unit a name ends in, as `usedBytes`, `avg_ready_pct` do. */
export function unitOfName(name: string): Unit {
  const word = /([A-Z]?[a-z]+|[A-Z]+)\d*$/.exec(name)?.[1]?.toLowerCase()
  return word !== undefined && Object.hasOwn(OF_WORD, word) ? (OF_WORD[word] ?? 'none') : 'none'
}

/** How people read a column; texts have no unit. */
export function unitOfColumn({ name, kind, type }: Pick<ColumnInfo, 'name' | 'kind' | 'type'>): Unit {
  const declared = OF_TYPE[type]
  if (declared) return declared
  return kind === 'number' || kind === 'any' ? unitOfName(name) : 'none'
}
