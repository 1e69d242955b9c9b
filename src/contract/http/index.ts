/**
 * The HTTP API as both ends agree on it: views, route contracts, problem format, typed client.
 * The web page sees this module and `model` only.
 */
export * from './views.ts'
