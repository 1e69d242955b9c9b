import { type TObject, type TSchema, Type } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import {
  type Batch,
  bufferCauses,
  ClusterOperatorSnapshotSchema,
  ClusterSnapshotSchema,
  DeploymentSnapshotSchema,
  isClusterName,
  type Loss,
  NamespaceSnapshotSchema,
  NodeSnapshotSchema,
  OperatorSnapshotSchema,
  PodSummarySchema,
  type SnapshotType,
} from '#model'
import { checkRowsParts } from './check-rows.ts'
import { InvalidBatchError } from './errors.ts'

const schemas: Readonly<Record<SnapshotType, TObject>> = {
  cluster: ClusterSnapshotSchema,
  node: NodeSnapshotSchema,
  podSummary: PodSummarySchema,
  namespace: NamespaceSnapshotSchema,
  deployment: DeploymentSnapshotSchema,
  operator: OperatorSnapshotSchema,
  clusterOperator: ClusterOperatorSnapshotSchema,
}

const MAX_ITEMS = 200_000
const MAX_NAME = 1024
const MAX_TEXT = 16_384
/** the last instant a Date can hold */
const MAX_INSTANT = 8.64e15
const outcomes = new Set(['complete', 'changed', 'absent', 'forbidden', 'unreachable'])

/**
 * A check of batches from anyone: every field has its type, every number is finite, every name and list is bounded.
 * Unknown fields are let through: a newer agent may send them.
 * @returns throws InvalidBatchError with the first fault found
 */
export function batchCheck(): (batch: Batch) => void {
  const validators = new Map<string, Validator>()
  const validatorOf = (type: string): Validator | undefined => {
    if (!Object.hasOwn(schemas, type)) return undefined
    const known = validators.get(type)
    if (known) return known
    const compiled = Compile(withQuickTexts(schemas[type as SnapshotType]))
    validators.set(type, compiled)
    return compiled
  }
  return (batch) => {
    checkHead(batch)
    if (batch.tables !== undefined) checkRowsParts(batch)
    const types = new Set<string>()
    let items = 0
    for (const [i, part] of batch.parts.entries()) {
      const where = `parts[${i}]`
      const validator = validatorOf(part.type)
      if (!validator) throw new InvalidBatchError(where, `has the unknown type ${JSON.stringify(short(part.type))}`)
      if (types.has(part.type)) throw new InvalidBatchError(where, `names ${part.type} a second time`)
      types.add(part.type)
      checkPart(part, where)
      if (part.outcome !== 'complete' && part.outcome !== 'changed') continue
      if (part.outcome === 'changed' && batch.base === undefined)
        throw new InvalidBatchError(where, 'is a difference, and the batch names no base')
      const list = part.outcome === 'complete' ? 'items' : 'put'
      const given: readonly { readonly name: string }[] = part.outcome === 'complete' ? part.items : part.put
      items += given.length + (part.outcome === 'changed' ? part.removed.length : 0)
      if (items > MAX_ITEMS) throw new InvalidBatchError(where, `holds more than ${MAX_ITEMS} items`)
      for (const [j, item] of given.entries()) {
        if (!validator.Check(item)) throw new InvalidBatchError(`${where}.${list}[${j}]`, faultOf(validator, item))
        if (!isName(item.name)) throw new InvalidBatchError(`${where}.${list}[${j}].name`, 'has no usable length')
      }
    }
  }
}

/** The same schema, whose labels and annotations are looked at without a list of them: every node of every round has some. */
const withQuickTexts = ({ properties }: TObject): TObject =>
  Type.Object(
    Object.fromEntries(
      Object.entries(properties).map(([name, schema]) => [
        name,
        !isTextsByName(schema) ? schema : Type.IsOptional(schema) ? Type.Optional(texts) : texts,
      ]),
    ),
  )

const isTextsByName = (schema: TSchema): boolean =>
  Type.IsRecord(schema) && Object.values(schema.patternProperties).every(Type.IsString)

const texts = Type.Refine(
  Type.Object({}),
  (value: object) => {
    for (const name in value) if (typeof (value as Record<string, unknown>)[name] !== 'string') return false
    return true
  },
  () => 'must have strings alone',
)

function checkHead(batch: Batch): void {
  const refuse = (where: string, what: string) => {
    throw new InvalidBatchError(where, what)
  }
  if (typeof batch !== 'object' || batch === null) refuse('it', 'is no object')
  if (typeof batch.cluster !== 'string' || !isClusterName(batch.cluster)) refuse('cluster', 'is no cluster name')
  if (!Number.isSafeInteger(batch.sequence) || batch.sequence < 1) refuse('sequence', 'is no positive whole number')
  if (batch.origin !== undefined && !isName(batch.origin)) refuse('origin', 'has no usable length')
  if (batch.base !== undefined && !(Number.isSafeInteger(batch.base) && batch.base >= 1))
    refuse('base', 'is no positive whole number')
  if (batch.base !== undefined && batch.base >= batch.sequence) refuse('base', 'is not before its own sequence')
  if (batch.backfill !== undefined && typeof batch.backfill !== 'boolean')
    refuse('backfill', 'is neither true nor false')
  if (batch.simulated !== undefined && batch.simulated !== true) refuse('simulated', 'is not true')
  if (batch.source !== 'pull' && batch.source !== 'push') refuse('source', 'is neither pull nor push')
  if (!isAmount(batch.collectedAt, MAX_INSTANT)) refuse('collectedAt', 'is no time in milliseconds')
  if (!isAmount(batch.durationMs, MAX_INSTANT)) refuse('durationMs', 'is no duration in milliseconds')
  if (batch.deploymentCount !== undefined && !isAmount(batch.deploymentCount, MAX_ITEMS * 100))
    refuse('deploymentCount', 'is no count')
  if (!Array.isArray(batch.parts)) refuse('parts', 'is no list')
  if (batch.failure !== undefined && !isFailure(batch.failure)) refuse('failure', 'has no code and message')
  if (batch.partial !== undefined && typeof batch.partial !== 'boolean') refuse('partial', 'is neither true nor false')
  if (batch.partial && batch.failure) refuse('failure', 'is that of a round, and this batch is of none')
}

function checkPart(part: Batch['parts'][number], where: string): void {
  if (!outcomes.has(part.outcome)) throw new InvalidBatchError(`${where}.outcome`, 'is unknown')
  if (typeof part.collector !== 'string' || part.collector.length > MAX_NAME)
    throw new InvalidBatchError(`${where}.collector`, 'is no name')
  if (!isAmount(part.durationMs, MAX_INSTANT))
    throw new InvalidBatchError(`${where}.durationMs`, 'is no duration in milliseconds')
  if (part.outcome === 'complete') {
    if (!Array.isArray(part.items)) throw new InvalidBatchError(`${where}.items`, 'is no list')
  } else if (part.outcome === 'changed') {
    if (!Array.isArray(part.put)) throw new InvalidBatchError(`${where}.put`, 'is no list')
    if (!Array.isArray(part.removed) || !part.removed.every(isName))
      throw new InvalidBatchError(`${where}.removed`, 'is no list of names')
  } else if (!isFailure(part)) throw new InvalidBatchError(where, 'has no code and message')
}

const MAX_LOST_RANGES = 10_000
const causes = new Set<Loss['cause']>([...bufferCauses, 'restored'])

/** @throws InvalidBatchError with the first fault found */
export function checkLoss(loss: Loss): void {
  const refuse = (where: string, what: string) => {
    throw new InvalidBatchError(`loss.${where}`, what)
  }
  const isSequence = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 1
  if (!isName(loss.origin)) refuse('origin', 'has no usable length')
  if (!isSequence(loss.sequence)) refuse('sequence', 'is no positive whole number')
  if (!Array.isArray(loss.lost) || loss.lost.length > MAX_LOST_RANGES) refuse('lost', 'is no list that could be taken')
  for (const [first, last] of loss.lost) {
    if (!isSequence(first) || !isSequence(last) || first > last) refuse('lost', 'holds what is no range of sequences')
  }
  if (!isAmount(loss.from, MAX_INSTANT)) refuse('from', 'is no time in milliseconds')
  if (!isAmount(loss.to, MAX_INSTANT) || loss.to < loss.from) refuse('to', 'is no time in milliseconds after from')
  if (!causes.has(loss.cause)) refuse('cause', 'is unknown')
  if (!isAmount(loss.count, Number.MAX_SAFE_INTEGER)) refuse('count', 'is no number')
  if (!isAmount(loss.keptEveryMs, MAX_INSTANT)) refuse('keptEveryMs', 'is no duration in milliseconds')
}

const isName = (value: unknown) => typeof value === 'string' && value.length > 0 && value.length <= MAX_NAME

const isAmount = (value: unknown, max: number) =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 && value <= max

const isFailure = (value: { readonly code?: unknown; readonly message?: unknown }) =>
  value !== null &&
  typeof value.code === 'string' &&
  value.code.length <= MAX_NAME &&
  typeof value.message === 'string' &&
  value.message.length <= MAX_TEXT

function faultOf(validator: Validator, item: unknown): string {
  const [first] = validator.Errors(item)
  return first ? `${first.instancePath || 'it'} ${first.message}` : 'does not fit its schema'
}

const short = (value: unknown) => String(value).slice(0, 80)
