import type { TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import {
  type Batch,
  ClusterOperatorSnapshotSchema,
  ClusterSnapshotSchema,
  DeploymentSnapshotSchema,
  isClusterName,
  NamespaceSnapshotSchema,
  NodeSnapshotSchema,
  OperatorSnapshotSchema,
  PodSummarySchema,
  type SnapshotType,
} from '#model'
import { InvalidBatchError } from './errors.ts'

const schemas: Readonly<Record<SnapshotType, TSchema>> = {
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
const outcomes = new Set(['complete', 'absent', 'forbidden', 'unreachable'])

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
    const compiled = Compile(schemas[type as SnapshotType])
    validators.set(type, compiled)
    return compiled
  }
  return (batch) => {
    checkHead(batch)
    const types = new Set<string>()
    let items = 0
    for (const [i, part] of batch.parts.entries()) {
      const where = `parts[${i}]`
      const validator = validatorOf(part.type)
      if (!validator) throw new InvalidBatchError(where, `has the unknown type ${JSON.stringify(short(part.type))}`)
      if (types.has(part.type)) throw new InvalidBatchError(where, `names ${part.type} a second time`)
      types.add(part.type)
      checkPart(part, where)
      if (part.outcome !== 'complete') continue
      items += part.items.length
      if (items > MAX_ITEMS) throw new InvalidBatchError(where, `holds more than ${MAX_ITEMS} items`)
      for (const [j, item] of part.items.entries()) {
        if (!validator.Check(item)) throw new InvalidBatchError(`${where}.items[${j}]`, faultOf(validator, item))
        const { name } = item as { name: string }
        if (name.length === 0 || name.length > MAX_NAME)
          throw new InvalidBatchError(`${where}.items[${j}].name`, 'has no usable length')
      }
    }
  }
}

function checkHead(batch: Batch): void {
  const refuse = (where: string, what: string) => {
    throw new InvalidBatchError(where, what)
  }
  if (typeof batch !== 'object' || batch === null) refuse('it', 'is no object')
  if (typeof batch.cluster !== 'string' || !isClusterName(batch.cluster)) refuse('cluster', 'is no cluster name')
  if (!Number.isSafeInteger(batch.sequence) || batch.sequence < 1) refuse('sequence', 'is no positive whole number')
  if (batch.source !== 'pull' && batch.source !== 'push') refuse('source', 'is neither pull nor push')
  if (!isAmount(batch.collectedAt, MAX_INSTANT)) refuse('collectedAt', 'is no time in milliseconds')
  if (!isAmount(batch.durationMs, MAX_INSTANT)) refuse('durationMs', 'is no duration in milliseconds')
  if (!Array.isArray(batch.parts)) refuse('parts', 'is no list')
  if (batch.failure !== undefined && !isTold(batch.failure)) refuse('failure', 'has no code and message')
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
    throw new InvalidBatchError(where, 'is a difference, which is not taken yet')
  } else if (!isTold(part)) throw new InvalidBatchError(where, 'has no code and message')
}

const isAmount = (value: unknown, max: number) =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 && value <= max

const isTold = (value: { readonly code?: unknown; readonly message?: unknown }) =>
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
