import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import type { BodyOf, RouteContract } from '#http'
import { RefusedError } from './problem.ts'

/** Lets the routes of this scope read JSON, up to a bound; anything else is let go unread, as everywhere. */
export function acceptJson(app: FastifyInstance, maxBytes: number): void {
  app.addContentTypeParser('application/json', { parseAs: 'string', bodyLimit: maxBytes }, (_request, body, done) => {
    try {
      done(null, JSON.parse(String(body)))
    } catch {
      done(new RefusedError('bad_request', 'the body is not JSON'))
    }
  })
}

// Contracts are few and never made at run time.
const validators = new WeakMap<TSchema, Validator>()

/**
 * The body of a request as its contract has it.
 * @throws RefusedError `bad_request` where there is none, `invalid_parameter` with the place where it is not as declared
 */
export function bodyOf<C extends RouteContract>(contract: C, request: FastifyRequest): BodyOf<C> {
  const schema = contract.schema.body
  if (!schema) return {} as BodyOf<C>
  if (typeof request.body !== 'object' || request.body === null)
    throw new RefusedError('bad_request', 'this needs a body of JSON (Content-Type: application/json)')
  const validator = validators.get(schema) ?? Compile(schema)
  validators.set(schema, validator)
  if (validator.Check(request.body)) return request.body as BodyOf<C>
  const [first] = validator.Errors(request.body)
  const place = first?.instancePath.slice(1).replaceAll('/', '.') || 'the body'
  throw new RefusedError('invalid_parameter', `${place} ${first?.message ?? 'is not as it should be'}`)
}
