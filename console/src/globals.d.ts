/** What the build gives to the page. */

/** The version of the package that the page was made from. */
declare const GANGWAY_VERSION: string;

declare module "*.css" {}
