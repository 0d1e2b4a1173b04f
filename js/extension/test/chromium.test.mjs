import { flows } from "./flows.mjs";

flows("chromium");
