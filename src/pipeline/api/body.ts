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
// NoInfer: to infer C from how a caller takes the answer apart would cost the compiler a million steps.
export function bodyOf<C extends RouteContract>(contract: C, request: FastifyRequest): NoInfer<BodyOf<C>> {
  const schema: TSchema | undefined = contract.schema.body
  return (schema ? checkedBody(schema, request) : {}) as unknown as NoInfer<BodyOf<C>> // checked against the contract's own schema
}

function checkedBody(schema: TSchema, { body }: FastifyRequest): unknown {
  if (typeof body !== 'object' || body === null)
    throw new RefusedError('bad_request', 'this needs a body of JSON (Content-Type: application/json)')
  const validator = validators.get(schema) ?? Compile(schema)
  validators.set(schema, validator)
  if (validator.Check(body)) return body
  const [first] = validator.Errors(body)
  const place = first?.instancePath.slice(1).replaceAll('/', '.') || 'the body'
  throw new RefusedError('invalid_parameter', `${place} ${first?.message ?? 'is not as it should be'}`)
}
