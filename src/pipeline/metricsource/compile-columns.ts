import { compileExpression, convertTo, type Expression, type Kind, type Problem } from '#expression'
import type { ScalarValue } from '#model'
import { type ParsedPath, parsePath } from '#path'
import { convert } from './convert.ts'
import type { Draft, DraftComputed, DraftField } from './draft.ts'
import { cut } from './draft.ts'
import type { Findings } from './findings.ts'
import { Needs } from './needs.ts'
import { readWhole } from './quantity.ts'
import type { FieldPlan } from './read-field.ts'
import type { ComputedPlan, RowPlan } from './source-row-builder.ts'
import type { ColumnInfo } from './types.ts'
import { unitOfColumn } from './units.ts'

export interface CompiledColumns {
  readonly plan: RowPlan
  readonly columns: readonly ColumnInfo[]
  /** of the paths of the fields, as documents hold them */
  readonly paths: readonly ParsedPath[]
}

/**
 * Fields and computed values of a declaration, in order; whole only where nothing found is an error. A computed value that cannot be
 * compiled is a column without values: what else is declared is still worth reading.
 */
export function compileColumns(draft: Draft, findings: Findings): CompiledColumns {
  checkNames(draft, findings)
  if (draft.fields.length === 0) {
    findings.error('fields_missing', 'spec.fields', 'there must be at least one field')
  }
  const compiled = draft.fields.map((field) => compileField(field, findings))
  const columns: ColumnInfo[] = draft.fields.map((field) => columnOf(field))
  const needs = new Needs(draft.computed)
  const computed = draft.computed.map((one) => {
    const plan = compileComputed(one, columns, needs, findings)
    columns.push(computedColumn(one, plan.expression))
    return plan
  })
  const plan = { fields: compiled.map(({ plan }) => plan), computed, names: columns.map(({ name }) => name) }
  return { plan, columns, paths: compiled.map(({ path }) => path) }
}

/** What expressions can name. */
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/
const KEYWORD = /^(?:true|false|null|nil)$/i

function checkNames({ fields, computed }: Draft, findings: Findings): void {
  const known = new Map<string, string>()
  for (const { name, at } of [...fields, ...computed]) {
    if (name === '') continue
    const first = known.get(name)
    if (first !== undefined) {
      findings.error('name_duplicate', `${at}.name`, `${JSON.stringify(cut(name))} is already the name of ${first}`)
    } else known.set(name, at)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
    if (/[\u0000-\u001f\u007f]/.test(name)) {
      findings.error('name_invalid', `${at}.name`, 'a name may not have control characters')
    } else if (!isName(name)) {
      const message = `${JSON.stringify(cut(name))} cannot be named in expressions: use letters, digits and "_"`
      findings.warning('name_not_identifier', `${at}.name`, message)
    }
  }
}

// What the language takes as a name beyond ASCII is for it to say; a warning too few is no harm.
const isName = (name: string) =>
  (IDENTIFIER.test(name) || /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name)) && !KEYWORD.test(name)

function compileField(field: DraftField, findings: Findings): { readonly plan: FieldPlan; readonly path: ParsedPath } {
  const { path = NOWHERE, fault } = field.path === '' ? { path: NOWHERE } : parsePath(field.path)
  if (fault) {
    const { message, from, to, suggestion } = fault
    const at = { text: field.path, from, to }
    findings.error(
      'field_path_invalid',
      `${field.at}.path`,
      message,
      suggestion === undefined ? { at } : { at, suggestion },
    )
  } else if (path.emptyKeyAt !== undefined) {
    const at = { text: field.path, from: path.emptyKeyAt, to: path.emptyKeyAt + 2 }
    const message = '".." does not search in all depths here: it is read as one "."'
    findings.warning('field_path_empty_key', `${field.at}.path`, message, { at })
  }
  const { type } = field
  const fallback = defaultOf(field, findings)
  return { path, plan: { ...path, name: field.name, type, convert: convert[type], fallback } }
}

const NOWHERE: ParsedPath = { segments: [], isSingle: true, texts: [], emptyKeyAt: undefined }

/** Read as if it had been found; a length is written in digits. */
function defaultOf({ at, type, default: text }: DraftField, findings: Findings): ScalarValue {
  if (text === undefined) return null
  const value = type === 'arrayLength' ? readWhole(text) : convert[type](text)
  if (value !== undefined) return value
  findings.warning(
    'field_default_invalid',
    `${at}.default`,
    `${JSON.stringify(cut(text))} does not fit type ${type}: null is taken`,
  )
  return null
}

function columnOf({ name, type }: DraftField): ColumnInfo {
  const kind: Kind = type === 'string' || type === 'timestamp' ? 'string' : type === 'boolean' ? 'boolean' : 'number'
  return { name, kind, type, isComputed: false, unit: unitOfColumn({ name, kind, type }) }
}

function computedColumn({ name, type: declared }: DraftComputed, expression: Expression | undefined): ColumnInfo {
  const given = expression?.kind === 'null' ? 'any' : (expression?.kind ?? 'any')
  const type = declared ?? (given === 'number' ? 'float' : given)
  const kind: Kind = type === 'string' || type === 'boolean' || type === 'any' ? type : 'number'
  return { name, kind, type, isComputed: true, unit: unitOfColumn({ name, kind, type }) }
}

function compileComputed(
  computed: DraftComputed,
  known: readonly ColumnInfo[],
  needs: Needs,
  findings: Findings,
): ComputedPlan {
  const { at, name, expression: text, type } = computed
  const broken: ComputedPlan = { name, expression: undefined, convert: () => undefined }
  if (text === '' || (findings.isFull && findings.hasErrors)) return broken
  const { expression, problems } = compileExpression(text, { names: known })
  for (const problem of problems) if (!findings.isFull) report(problem, computed, needs, findings)
  if (!expression) return broken
  if (type !== undefined && type !== 'string' && expression.kind === 'string' && type !== 'boolean') {
    const message = `the expression gives text, and type ${type} keeps it only where it is a number`
    findings.warning('computed_type_unlikely', `${at}.type`, message)
  }
  return {
    name,
    expression,
    convert: type === undefined ? (value) => value : (value) => convertTo(value, type) ?? undefined,
  }
}

function report(
  problem: Problem,
  { at: path, name, expression: text }: DraftComputed,
  needs: Needs,
  findings: Findings,
): void {
  const { code, from, to, suggestion } = problem
  const named = text.slice(from, to)
  const place = `${path}.expression`
  const at = { text, from, to }
  const rest = problem.severity === 'error' ? `: ${JSON.stringify(cut(name))} is null in every object` : ''
  if (code !== 'unknown_name' || !needs.has(named)) {
    const more = suggestion === undefined ? { at } : { at, suggestion }
    findings.warning(`expression_${code}`, place, `${problem.message}${rest}`, more)
    return
  }
  const circle = needs.circle(name, named)
  const message = circle
    ? `it needs itself: ${circle.join(' → ')}`
    : `${named} is computed after it: put ${named} above ${name}`
  findings.warning(circle ? 'computed_circle' : 'computed_order', place, `${message}${rest}`, { at })
}
