import type { Row } from '#extract'
import { SinkError, type Writing } from '../sink.ts'
import { type DocumentLayout, writingValues } from './layout.ts'
import { isListPath, renderPath, segmentOf, uniqueSegmentOf } from './paths.ts'

/**
 * The path of each row's file, in the order of the rows. Paths that are equal only because a value was cut or changed get a mark of
 * that value, and the name of a row one that would make it the list of somebody's files; the others keep theirs.
 * @throws SinkError terminal, where two rows have one path all the same
 */
export function rowPaths(rows: Iterable<Row>, layout: DocumentLayout, writing: Writing, generation: number): string[] {
  const common = writingValues(writing, String(generation), layout.format)
  const list = [...rows]
  const pathOf = (row: Row, marked: Marked) =>
    renderPath(layout.rowTemplate, { ...common, ...valuesOf(row, layout, marked) })
  const paths = list.map((row) => pathOf(row, 'none'))
  const uses = new Map<string, number>()
  for (const path of paths) uses.set(path, (uses.get(path) ?? 0) + 1)
  const owners = new Map<string, Row>()
  return paths.map((plain, i) => {
    const row = list[i] as Row
    const own = uses.get(plain) === 1 ? plain : pathOf(row, 'changed')
    const path = isListPath(own) ? pathOf(row, 'name') : own
    const other = owners.get(path)
    if (other) throw collision(path, other, row)
    owners.set(path, row)
    return path
  })
}

/** Which values get a mark: those that were cut or changed, and the name whatever it is. */
type Marked = 'none' | 'changed' | 'name'

function valuesOf(row: Row, { withGroup, lowercaseKind, maxSegmentLength }: DocumentLayout, marked: Marked) {
  const segment = (value: string, isNamed = false) => {
    const { text, isChanged } = segmentOf(value, maxSegmentLength)
    return (isChanged && marked !== 'none') || (isNamed && marked === 'name')
      ? uniqueSegmentOf(value, maxSegmentLength)
      : text
  }
  return {
    sourceNamespace: segment(row.namespace),
    sourceName: segment(row.name, true),
    group: withGroup ? segment(row.group ?? '') : '',
    kind: segment(lowercaseKind ? row.kind.toLowerCase() : row.kind),
    uid: segment(row.uid),
    targetNamespace: segment(row.targetNamespace),
    targetName: segment(row.targetName),
  }
}

function collision(path: string, one: Row, other: Row): SinkError {
  const words = ({ targetName, group, kind, namespace, name }: Row) =>
    `${kind}${group === undefined ? '' : `.${group}`} ${namespace === '' ? '' : `${namespace}/`}${name} of target ${targetName}`
  return new SinkError(
    'terminal',
    `${words(one)} and ${words(other)} would both be written to ${path}: add {group}, {targetName} or {uid} to layout.pathTemplate`,
  )
}
