import type { FastifyInstance } from 'fastify'
import { RefusedError } from './problem.ts'
import { parseStep, parseTime } from './window.ts'

/** Of a query string or a form; a list where a parameter may stand several times. */
export type Parameters = Readonly<Record<string, string | readonly string[] | undefined>>

const maxFormBytes = 64 * 1024

/** Forms, as dashboards send them so that no address grows too long. */
export function takeForms(app: FastifyInstance): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: maxFormBytes },
    (_request, body, done) => {
      const form = new URLSearchParams(String(body))
      done(null, Object.fromEntries([...form.keys()].map((name) => [name, form.getAll(name)])))
    },
  )
}

/** What a form says and, of what it does not say, what the query string does. */
export const formOf = (query: unknown, form: unknown): Parameters => ({ ...stringsOf(query), ...stringsOf(form) })

function stringsOf(values: unknown): Parameters {
  const pairs = Object.entries(typeof values === 'object' && values !== null ? values : {})
  return Object.fromEntries(
    pairs.flatMap(([name, value]) => {
      const texts = [value].flat().filter((text) => typeof text === 'string')
      return texts.length > 0 ? [[name, texts]] : []
    }),
  )
}

/** As it stands first; an empty one is none. */
export function first(given: Parameters, name: string): string | undefined {
  const text = all(given, name)[0]
  return text === undefined || text.trim() === '' ? undefined : text
}

export const all = (given: Parameters, name: string): readonly string[] => [given[name] ?? []].flat()

/** @throws RefusedError `invalid_parameter` */
export function required(given: Parameters, name: string): string {
  const text = first(given, name)
  if (text !== undefined) return text
  throw new RefusedError('invalid_parameter', `${name} parameter required`)
}

function read(name: string, text: string, parse: (text: string) => number | undefined): number {
  const value = parse(text)
  if (value !== undefined) return value
  throw new RefusedError('invalid_parameter', `${name}=${text.slice(0, 64)} cannot be read`)
}

/** ms since the Unix epoch. @throws RefusedError `invalid_parameter` where it is there and no time */
export function timeOf(given: Parameters, name: string): number | undefined {
  const text = first(given, name)
  return text === undefined ? undefined : read(name, text, parseTime)
}

/** ms. @throws RefusedError `invalid_parameter` where it is there and no duration */
export function durationOf(given: Parameters, name: string): number | undefined {
  const text = first(given, name)
  return text === undefined ? undefined : read(name, text, parseStep)
}

/** 0 and nothing are no limit. @throws RefusedError `invalid_parameter` */
export function limitOf(given: Parameters, name = 'limit'): number {
  const text = first(given, name) ?? '0'
  const limit = read(name, text, (digits) => (/^\d{1,9}$/.test(digits) ? Number(digits) : undefined))
  return limit === 0 ? Number.POSITIVE_INFINITY : limit
}

export const inSeconds = (ms: number): string => String(ms / 1000)
