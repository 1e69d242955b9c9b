import type { Static, TSchema } from 'typebox'

/**
 * Who may call a route. There is no default: a route without it does not start.
 * `public` needs no principal, `authenticated` needs one, `filtered` answers only what that principal may see of the fleet,
 * `administrator` is for administrators, who see all of it.
 */
export type Access = 'public' | 'authenticated' | 'filtered' | 'administrator'

/** One route as both ends agree on it. `url` is complete; parameters are written `:name`. */
export interface RouteContract {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly access: Access
  /** set where the answer is not JSON */
  readonly contentType?: string
  readonly schema: {
    readonly operationId: string
    readonly summary: string
    readonly params?: TSchema
    readonly querystring?: TSchema
    /** a POST's form-encoded body */
    readonly form?: TSchema
    /** a POST's JSON body */
    readonly body?: TSchema
    /** the body of a 200; errors are always a Problem */
    readonly response: TSchema
  }
}

type SchemaOf<
  C extends RouteContract,
  K extends 'params' | 'querystring' | 'form' | 'body',
> = C['schema'][K] extends TSchema ? Static<C['schema'][K]> : Readonly<Record<string, never>>

/** What the server hands a route after validation. */
export type ParamsOf<C extends RouteContract> = SchemaOf<C, 'params'>
/** The query of a route, after validation. */
export type QueryOf<C extends RouteContract> = SchemaOf<C, 'querystring'>
/** The JSON body of a route, after validation. */
export type BodyOf<C extends RouteContract> = SchemaOf<C, 'body'>
/** The body of an answer with status 200. */
export type AnswerOf<C extends RouteContract> = Static<C['schema']['response']>
