import { ageSince } from './age.ts'
import type { ApiObject } from './types.ts'

export interface TableColumn {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  readonly priority: number
}

/** The columns of one kind and what stands in them. */
export interface TableShape {
  readonly columns: readonly TableColumn[]
  readonly cells: (object: ApiObject, nowMs: number) => unknown[]
}

/** What stands in one column. */
export type Cell = (object: ApiObject, nowMs: number) => unknown
export type Declared = readonly [name: string, cell: Cell, options?: { wide?: true; type?: string; format?: string }]

export function shape(...declared: readonly Declared[]): TableShape {
  return {
    columns: declared.map(([name, , { wide, type = 'string', format = '' } = {}]) => ({
      name,
      type,
      format,
      description: '',
      priority: wide ? 1 : 0,
    })),
    cells: (object, nowMs) => declared.map(([, cell]) => cell(object, nowMs)),
  }
}

export type Fields = Readonly<Record<string, unknown>>

export const fields = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
export const items = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(fields) : [])
export const text = (value: unknown, missing = ''): string =>
  value === undefined || value === null || value === '' ? missing : String(value)
export const count = (value: unknown): number => Number(value ?? 0)
export const spec = (object: ApiObject): Fields => fields(object.spec)
export const status = (object: ApiObject): Fields => fields(object.status)
export const sizeOf = (value: unknown): number => Object.keys(fields(value)).length

export const wide = { wide: true } as const
export const whole = { type: 'integer' } as const
export const name: Declared = ['Name', ({ metadata }) => metadata.name, { format: 'name' }]
export const age: Declared = ['Age', ({ metadata }, nowMs) => ageSince(metadata.creationTimestamp, nowMs)]

export const labelsText = (labels: unknown): string =>
  Object.entries(fields(labels))
    .map(([key, value]) => (value === '' ? key : `${key}=${value}`))
    .sort()
    .join(',') || '<none>'

export function selectorText(selector: unknown): string {
  const { matchLabels, matchExpressions } = fields(selector)
  const labels = labelsText(matchLabels)
  const expressions = items(matchExpressions).map(({ key, operator, values }) => {
    const list = Array.isArray(values) ? `(${values.join(',')})` : ''
    if (operator === 'Exists') return String(key)
    if (operator === 'DoesNotExist') return `!${key}`
    return `${key} ${operator === 'In' ? 'in' : 'notin'} ${list}`
  })
  return [labels === '<none>' ? '' : labels, ...expressions].filter(Boolean).join(',') || '<none>'
}

const containers = (object: ApiObject): Fields[] => items(fields(fields(spec(object).template).spec).containers)
/** Of the pods that a workload makes. */
export const containerColumns: readonly Declared[] = [
  [
    'Containers',
    (object) =>
      containers(object)
        .map((each) => text(each.name))
        .join(','),
    wide,
  ],
  [
    'Images',
    (object) =>
      containers(object)
        .map((each) => text(each.image))
        .join(','),
    wide,
  ],
]
