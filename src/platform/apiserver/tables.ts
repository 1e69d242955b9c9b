import { ageSince } from './age.ts'
import { builtInTables, plainTable } from './built-in-tables.ts'
import { compilePath } from './jsonpath.ts'
import type { Resource } from './served.ts'
import type { TableColumn, TableShape } from './table-shape.ts'
import type { ApiObject, PrinterColumn } from './types.ts'

export interface TableOptions {
  /** of meta.k8s.io */
  readonly version: string
  readonly rowObject: 'None' | 'Metadata' | 'Object'
  readonly nowMs: number
  readonly metadata: object
  /** a watch sends the columns once */
  readonly withoutColumns?: boolean
}

const shapes = new WeakMap<Resource, TableShape>()

function shapeOf(resource: Resource): TableShape {
  const known = shapes.get(resource)
  if (known) return known
  const made = resource.builtIn
    ? (builtInTables[resource.collection] ?? plainTable)
    : resource.columns.length > 0
      ? declaredShape(resource.columns)
      : plainTable
  shapes.set(resource, made)
  return made
}

const NAME: TableColumn = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name must be unique within its namespace, if it has one.',
  priority: 0,
}

function declaredShape(columns: readonly PrinterColumn[]): TableShape {
  const read = columns.map((column) => {
    const path = compilePath(column.jsonPath)
    return (object: ApiObject, nowMs: number) => cell(column, path?.(object) ?? [], nowMs)
  })
  return {
    columns: [
      NAME,
      ...columns.map(({ name, type, format = '', description = '', priority = 0, jsonPath }) => ({
        name,
        type,
        format,
        description: description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
        priority,
      })),
    ],
    cells: (object, nowMs) => [object.metadata.name, ...read.map((column) => column(object, nowMs))],
  }
}

function cell({ type }: PrinterColumn, found: readonly unknown[], nowMs: number): unknown {
  const [first] = found
  if (first === undefined || first === null) return null
  switch (type) {
    case 'integer':
      return typeof first === 'number' ? Math.trunc(first) : null
    case 'number':
      return typeof first === 'number' ? first : null
    case 'boolean':
      return typeof first === 'boolean' ? first : null
    case 'date':
      return ageSince(first, nowMs)
    default:
      return found.map((value) => (typeof value === 'object' ? JSON.stringify(value) : String(value))).join(' ')
  }
}

/** meta.k8s.io Table of some objects of one resource, as `kubectl get` asks for it. */
export function tableOf(resource: Resource, objects: readonly ApiObject[], options: TableOptions): object {
  const { columns, cells } = shapeOf(resource)
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${options.version}`,
    metadata: options.metadata,
    columnDefinitions: options.withoutColumns ? null : columns,
    rows: objects.map((object) => ({
      cells: cells(object, options.nowMs),
      ...rowObject(object, options),
    })),
  }
}

function rowObject(object: ApiObject, { rowObject, version }: TableOptions): { object?: unknown } {
  if (rowObject === 'None') return {}
  if (rowObject === 'Object') return { object }
  return { object: { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata: object.metadata } }
}
