import { equalJson, isMap, type Json, setOwn } from '../schema/json.ts'
import { PatchError } from './error.ts'

export const MAX_OPERATIONS = 10_000
/** What all `copy` operations of one patch may bring together: a few of them could otherwise double a value without end. */
const MAX_COPIED_BYTES = 3 * 1024 * 1024

interface Operation {
  readonly op: string
  readonly path: readonly string[]
  readonly from?: readonly string[]
  readonly value?: unknown
}

/**
 * Applies a JSON patch (RFC 6902), all of it or nothing; the document is not changed.
 * @throws PatchError 400 for what is no patch, 413 above 10 000 operations, 422 for an operation that does not fit
 */
export function applyJsonPatch(doc: unknown, ops: unknown): unknown {
  if (!Array.isArray(ops)) throw new PatchError(400, 'a JSON patch is a list of operations')
  if (ops.length > MAX_OPERATIONS)
    throw new PatchError(413, `The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${ops.length}`)
  let copied = 0
  return ops.reduce<unknown>((current, given, at) => {
    const operation = parseOperation(given, at)
    if (operation.op === 'copy') {
      copied += sizeOf(valueAt(current, operation.from ?? [], operation), MAX_COPIED_BYTES)
      if (copied > MAX_COPIED_BYTES)
        throw new PatchError(413, `the copy operations of the patch exceed ${MAX_COPIED_BYTES} bytes`)
    }
    return step(current, operation)
  }, doc)
}

const OPS = new Set(['add', 'remove', 'replace', 'move', 'copy', 'test'])

function parseOperation(given: unknown, at: number): Operation {
  const bad = (why: string) => new PatchError(400, `operation ${at} of the JSON patch ${why}`)
  if (!isMap(given)) throw bad('is no object')
  const { op, path, from } = given
  if (typeof op !== 'string' || !OPS.has(op)) throw bad(`has an unknown op ${JSON.stringify(op)}`)
  const parsed: Operation = { op, path: parsePointer(path, bad) }
  if (op === 'move' || op === 'copy') return { ...parsed, from: parsePointer(from, bad) }
  if (op === 'remove') return parsed
  if (!Object.hasOwn(given, 'value')) throw bad('lacks a value')
  return { ...parsed, value: given.value }
}

function parsePointer(pointer: unknown, bad: (why: string) => PatchError): string[] {
  if (typeof pointer !== 'string') throw bad('lacks a path')
  if (pointer === '') return []
  if (!pointer.startsWith('/') || /~(?![01])/.test(pointer))
    throw bad(`has a malformed path ${JSON.stringify(pointer)}`)
  return pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

const pointerOf = (path: readonly string[]): string =>
  path.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

const unfit = (operation: Operation, path: readonly string[], why: string): PatchError =>
  new PatchError(422, `${operation.op} operation does not apply: ${pointerOf(path) || 'the document'} ${why}`)

function step(doc: unknown, operation: Operation): unknown {
  const { op, path, from = [], value } = operation
  if (op === 'add') return change(doc, path, operation, insert(value))
  if (op === 'remove') return change(doc, path, operation, take)
  if (op === 'replace') return change(doc, path, operation, overwrite(value))
  if (op === 'copy') return change(doc, path, operation, insert(valueAt(doc, from, operation)))
  if (op === 'move') {
    if (path.length > from.length && from.every((part, at) => part === path[at]))
      throw unfit(operation, path, 'lies within what is moved')
    const moved = valueAt(doc, from, operation)
    return change(change(doc, from, operation, take), path, operation, insert(moved))
  }
  if (!equalJson(valueAt(doc, path, operation), value)) throw unfit(operation, path, 'has another value')
  return doc
}

/** What is done to the last part of a path: on the document itself, a map or a list. */
interface Edit {
  document(): unknown
  map(map: Json, key: string): void
  list(list: unknown[], part: string, fail: (why: string) => PatchError): void
}

const insert = (value: unknown): Edit => ({
  document: () => value,
  map: (map, key) => setOwn(map, key, value),
  list: (list, part, fail) => {
    const index = part === '-' ? list.length : indexIn(part)
    if (index === undefined || index > list.length) throw fail('is outside of the list')
    list.splice(index, 0, value)
  },
})

/** Of a map the Kubernetes API takes a replacement for what is not there, too, which RFC 6902 does not. */
const overwrite = (value: unknown): Edit => ({
  document: () => value,
  map: (map, key) => setOwn(map, key, value),
  list: (list, part, fail) => {
    const index = indexIn(part)
    if (index === undefined || index >= list.length) throw fail('does not exist')
    list[index] = value
  },
})

const take: Edit = {
  document: () => null,
  map: (map, key) => {
    delete map[key]
  },
  list: (list, part) => {
    list.splice(Number(part), 1)
  },
}

/** Copies what lies on the way to a path, and edits its end. */
function change(doc: unknown, path: readonly string[], operation: Operation, edit: Edit): unknown {
  if (edit === take) valueAt(doc, path, operation)
  if (path.length === 0) return edit.document()
  const walk = (value: unknown, depth: number): unknown => {
    const part = path[depth] ?? ''
    const here = path.slice(0, depth + 1)
    const last = depth === path.length - 1
    if (Array.isArray(value)) {
      const copy: unknown[] = [...value]
      if (last) edit.list(copy, part, (why) => unfit(operation, here, why))
      else copy[Number(part)] = walk(child(value, part, here, operation), depth + 1)
      return copy
    }
    if (!isMap(value)) throw unfit(operation, here, 'does not exist')
    const copy = { ...value }
    if (last) edit.map(copy, part)
    else setOwn(copy, part, walk(child(value, part, here, operation), depth + 1))
    return copy
  }
  return walk(doc, 0)
}

const valueAt = (doc: unknown, path: readonly string[], operation: Operation): unknown =>
  path.reduce((value, part, depth) => child(value, part, path.slice(0, depth + 1), operation), doc)

function child(value: unknown, part: string, path: readonly string[], operation: Operation): unknown {
  if (Array.isArray(value)) {
    const index = indexIn(part)
    if (index !== undefined && index < value.length) return value[index]
  } else if (isMap(value) && Object.hasOwn(value, part)) return value[part]
  throw unfit(operation, path, 'does not exist')
}

const indexIn = (part: string): number | undefined => (/^(0|[1-9]\d{0,8})$/.test(part) ? Number(part) : undefined)

/** About how many bytes a value is as JSON; counting stops at the limit. */
function sizeOf(value: unknown, limit: number): number {
  let size = 0
  const count = (part: unknown): void => {
    if (size > limit) return
    if (typeof part === 'string') size += part.length + 2
    else if (Array.isArray(part)) {
      size += 2
      for (const item of part) count(item)
    } else if (isMap(part)) {
      size += 2
      for (const [key, item] of Object.entries(part)) {
        size += key.length + 4
        count(item)
      }
    } else size += 5
  }
  count(value)
  return size
}
