import type { Fault } from '../../kind.ts'
import { faultIf, listOf, shown, textOf } from './json.ts'

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const OBJECT_NAME = new RegExp(`^${LABEL}(\\.${LABEL})*$`)
const NAMESPACE = new RegExp(`^${LABEL}$`)

/** Why this is not the name of an object; undefined where it is one. */
export function nameProblem(name: string): string | undefined {
  if (name.trim() === '') return 'is empty: a name is needed'
  if (name.includes('/')) return `is ${shown(name)}: give the name alone, without a namespace before it`
  if (name.length > 253 || !OBJECT_NAME.test(name))
    return `is ${shown(name)}: a name has small letters, digits, "-" and "." only, at most 253`
  return undefined
}

/** Why this is not the name of a namespace. */
export function namespaceProblem(name: string): string | undefined {
  if (name.trim() === '') return 'is empty: a namespace is needed'
  return name.length <= 63 && NAMESPACE.test(name)
    ? undefined
    : `is ${shown(name)}: a namespace has small letters, digits and "-" only, at most 63`
}

/** A name in an object; nothing is said of one that is not there. */
export function nameFaults(path: string, value: unknown): Fault[] {
  const name = textOf(value)
  return name === undefined ? [] : faultIf(path, nameProblem(name))
}

/** A list of texts: none blank, none twice, each as `problem` demands. */
export function listFaults(
  path: string,
  value: unknown,
  problem: (text: string) => string | undefined = () => undefined,
): Fault[] {
  const seen = new Map<string, number>()
  return listOf(value).flatMap((item, at) => {
    const text = textOf(item)
    if (text === undefined) return []
    const here = `${path}[${at}]`
    if (text.trim() === '') return [{ path: here, message: 'is empty: take it out, or write what is meant' }]
    const first = seen.get(text)
    if (first !== undefined)
      return [{ path: here, message: `is ${shown(text)} again, as ${path}[${first}]: take one out` }]
    seen.set(text, at)
    return faultIf(here, problem(text))
  })
}
