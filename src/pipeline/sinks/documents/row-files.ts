import type { Row } from '#extract'
import { SinkError, type Writing } from '../sink.ts'
import { type DocumentLayout, writingValues } from './layout.ts'
import { renderPath, segmentOf, uniqueSegmentOf } from './paths.ts'

/**
 * The path of each row's file, in the order of the rows. Paths that are equal only because a value was cut or changed get a mark of
 * that value; the others keep theirs.
 * @throws SinkError terminal, where two rows have one path all the same
 */
export function rowPaths(rows: Iterable<Row>, layout: DocumentLayout, writing: Writing, generation: number): string[] {
  const common = writingValues(writing, String(generation), layout.format)
  const list = [...rows]
  const paths = list.map((row) => renderPath(layout.rowTemplate, { ...common, ...valuesOf(row, layout, false) }))
  const uses = new Map<string, number>()
  for (const path of paths) uses.set(path, (uses.get(path) ?? 0) + 1)
  const owners = new Map<string, Row>()
  return paths.map((plain, i) => {
    const row = list[i] as Row
    const path =
      uses.get(plain) === 1 ? plain : renderPath(layout.rowTemplate, { ...common, ...valuesOf(row, layout, true) })
    const other = owners.get(path)
    if (other) throw collision(path, other, row)
    owners.set(path, row)
    return path
  })
}

/** @param isMarked values that were cut or changed say so */
function valuesOf(row: Row, { withGroup, lowercaseKind, maxSegmentLength }: DocumentLayout, isMarked: boolean) {
  const segment = (value: string) => {
    const { text, isChanged } = segmentOf(value, maxSegmentLength)
    return isChanged && isMarked ? uniqueSegmentOf(value, maxSegmentLength) : text
  }
  return {
    sourceNamespace: segment(row.namespace),
    sourceName: segment(row.name),
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
