import { flows } from "./flows.mjs";

flows("firefox");
