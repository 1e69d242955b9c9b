import type { MetricSourceSpec, MetricSourceStatus } from '#kinds'
import type { Finding } from '#metricsource'
import type { FieldSum } from './collected.ts'
import { findingText } from './finding-text.ts'

type Validation = NonNullable<MetricSourceStatus['fieldValidation']>[number]

const OF_FIELD = /^spec\.(fields|computed)\[(\d+)\]/
const MAX_FIELDS = 512
const MAX_NAME = 128
const MAX_TEXT = 4_096

/** How each field and computed value stands: what the compiler says of it, else how it could be read. */
export function fieldValidation(
  spec: MetricSourceSpec | undefined,
  findings: readonly Finding[],
  sums: ReadonlyMap<string, FieldSum>,
): readonly Validation[] {
  const declared = [
    ...(spec?.fields ?? []).map(({ name, type = 'string' }, i) => ({ name, type, at: `fields[${i}]` })),
    ...(spec?.computed ?? []).map(({ name, type = 'value' }, i) => ({ name, type, at: `computed[${i}]` })),
  ]
  const found = new Map<string, Finding[]>()
  for (const finding of findings) {
    const [, list, place] = OF_FIELD.exec(finding.path) ?? []
    if (list) found.set(`${list}[${place}]`, [...(found.get(`${list}[${place}]`) ?? []), finding])
  }
  return declared.slice(0, MAX_FIELDS).map(({ name, type, at }) => {
    const seen = read(sums.get(name), type)
    const { status, message } = compiled(found.get(at), seen) ?? seen
    return { field: name.slice(0, MAX_NAME), status, ...(message && { message: message.slice(0, MAX_TEXT) }) }
  })
}

type Said = Pick<Validation, 'status' | 'message'>

function compiled(findings: readonly Finding[] | undefined, seen: Said): Said | undefined {
  if (!findings) return undefined
  const isInvalid = seen.status === 'invalid' || findings.some(({ severity }) => severity === 'error')
  return { status: isInvalid ? 'invalid' : 'warning', message: findings.map(findingText).join('; ') }
}

function read(sum: FieldSum | undefined, type: string): Said {
  if (!sum || sum.rows === 0) return { status: 'valid' }
  const { rows, missing, malformed, example } = sum
  const such = example ? `, such as ${JSON.stringify(example)}` : ''
  if (malformed >= rows) return { status: 'invalid', message: `no ${type} in any of ${objects(rows)}${such}` }
  if (malformed > 0) {
    const which = `no ${type} in ${malformed} of ${objects(rows)}${such}`
    return { status: 'warning', message: missing > 0 ? `${which}; nothing in ${missing}` : which }
  }
  if (missing >= rows) return { status: 'warning', message: `nothing in any of ${objects(rows)}` }
  return { status: 'valid', message: `read in ${rows - missing} of ${objects(rows)}` }
}

const objects = (count: number) => `${count} ${count === 1 ? 'object' : 'objects'}`
