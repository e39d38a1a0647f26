import { createRoot } from "react-dom/client";
import "./styles/base.css";
import "./styles/grid.css";
import "./styles/job.css";
import "./styles/overview.css";
import "./styles/parts.css";
import "./styles/table.css";
import { App } from "./app.tsx";

const place = document.getElementById("page");
if (place !== null) createRoot(place).render(<App />);
