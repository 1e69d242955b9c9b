import { shown } from './json.ts'

const DOCUMENT = ['cluster', 'namespace', 'name', 'generation', 'extension']
const ROW = [...DOCUMENT, 'sourceNamespace', 'sourceName', 'group', 'kind', 'uid', 'targetNamespace', 'targetName']

const list = (names: readonly string[]): string => names.map((name) => `{${name}}`).join(', ')

/** What any path that is made of a template must obey, whatever is filled in. */
function shapeProblem(template: string, placeholders: readonly string[]): string | undefined {
  if (template.trim() === '') return 'is empty: write a path, or leave it out'
  if (template.startsWith('/')) return `is ${shown(template)}: it must not begin with "/"`
  if (template.includes('..'))
    return `is ${shown(template)}: ".." would leave the place of this cluster; write the path without`
  if (template.includes('\\')) return `is ${shown(template)}: folders are divided by "/", not by "\\"`
  if (template.split('/').some((part) => part.toLowerCase() === '.git'))
    return `is ${shown(template)}: ".git" is git's own folder; give it another name`
  if (template.includes('\0')) return 'has a NUL byte: take it out'
  const unknown = [...template.matchAll(/\{([^{}]*)\}/g)].find(([, name = '']) => !placeholders.includes(name))
  if (unknown) return `has ${shown(unknown[0])}: known are ${list(placeholders)}`
  const rest = template.replace(/\{[^{}]*\}/g, '')
  return /[{}]/.test(rest) ? `is ${shown(template)}: a brace has no partner` : undefined
}

/** Why a document cannot be written under this template; undefined where it can. */
export function documentPathProblem(template: string): string | undefined {
  const problem = shapeProblem(template, DOCUMENT)
  if (problem) return problem
  const missing = ['namespace', 'name'].filter((name) => !template.includes(`{${name}}`))
  return missing.length > 0
    ? `is ${shown(template)} without ${list(missing)}: inventories would overwrite each other; add it`
    : undefined
}

/** Why rows cannot have files under this template. */
export function rowPathProblem(template: string): string | undefined {
  const problem = shapeProblem(template, ROW)
  if (problem) return problem
  return template.includes('{sourceName}') || template.includes('{uid}')
    ? undefined
    : `is ${shown(template)}: rows would overwrite each other; add {sourceName} or {uid}`
}
